# Lists what one can do.
default:
    @just --list

# Runs the example.
parcels *args:
    cargo run --release -- run examples/parcels {{args}}

# Runs every test.
test:
    cargo test --workspace

# Formats, and denies warnings.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Checks template.yaml (needs aws-sam-cli and cfn-lint).
template:
    sam validate --lint
    cfn-lint template.yaml

# Builds the Lambda functions.
build:
    sam build

# Drives the real functions on an emulator, or where AWS_ENDPOINT_URL points.
e2e:
    tests/e2e/run

# Writes the description of the HTTP API.
openapi:
    cargo run -q -p fanfold-openapi > docs/openapi.json

# Attacks the HTTP API by its description.
hostile:
    tests/hostile/http/run

# Everything CI does.
ci:
    .ci/run

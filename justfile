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

# Upgrades a stack on an emulator in the middle of its work, from the newest release or another older state.
upgrade *ref:
    tests/e2e/upgrade {{ref}}

# Tests the clients, also against `fanfold up`.
clients:
    clients/test

# Drives the dashboard in a headless browser.
dashboard:
    tests/dashboard/run

# Runs every shell block of the guides and other documents as it is written, slow ones too.
guides *files:
    tests/guides/run {{files}}

# Measures everything and writes docs/BENCHMARKS.md; `just bench --help` lists the parts.
bench *args:
    benches/run.py {{args}}

# Writes the description of the HTTP API.
openapi:
    cargo run -q -p fanfold-openapi > docs/openapi.json

# Attacks the HTTP API by its description, and fuzzes what reads foreign input.
hostile:
    tests/hostile/http/run
    tests/hostile/fuzz

# Licences, sources, duplicates and advisories of the dependencies.
supply-chain:
    tests/supply-chain

# Thousands of seeds of the simulation; fails if a request of a step that is not rare was never hit by a crash.
seeds count="2000":
    cargo run --release -p fanfold-simulation -- --seeds {{count}} --covered

# Every schedule of two or three workers at one lane or fan-out, with so many faults in each.
small faults="1" *cases:
    cargo run --release -p fanfold-simulation -- --faults {{faults}} --small {{cases}}

# Seeds that nobody ran before, on all cores, until one fails or it is stopped.
soak:
    tests/simulation/soak

# Breaks the protocols in one place at a time: each must be caught.
mutations *names:
    tests/simulation/mutations/run.sh {{names}}

# Kills the example a hundred times at random moments.
kills:
    cargo test --release -p fanfold-cli --test it -- --ignored --nocapture killed_at_random_moments

# How long small lanes wait beside a large one.
fairness:
    cargo test --release -p fanfold-tests --test it -- --ignored --nocapture small_lanes_wait

# What 200,000 tasks cost that have a target each.
tiny-targets:
    cargo test --release -p fanfold-cli --test it -- --ignored --nocapture alone_in_their_lanes

# 64 registrants bring the same 10,000 keys at once, or another number of keys.
registrants keys="10000":
    RACED_KEYS={{keys}} cargo test --release -p fanfold-tests --test it -- --ignored --nocapture share_many_orders

# The SQL of docs/partitioning.md on PostgreSQL and MariaDB.
sql:
    tests/sql/run --all

# Everything CI does.
ci:
    .ci/run

# Runs against the sandbox in every combination of what it can do (half an hour).
sandbox:
    cargo test --release -p fanfold-cli --test it -- --ignored --nocapture in_every_combination

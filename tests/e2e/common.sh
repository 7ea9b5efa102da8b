# What `run` and `upgrade` share; they source it from the root of the repository, with `work`, `stack` and `mode` set.

# phase NAME COMMAND...: runs a command and notes how long it took.
phases=()
phase() {
  local name=$1 began=$SECONDS
  shift
  echo "== $name"
  "$@"
  phases+=("$name: $((SECONDS - began)) s")
}

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" > /dev/null || { echo "$tool is missing" >&2; exit 2; }
  done
}

# SAM and the emulator, each in an environment of its own.
tools() {
  tests/venv "$work/sam" aws-sam-cli==1.170.0 cargo-lambda==1.9.2
  tests/venv "$work/emulator" 'ministack[full]==1.5.33'
}

# The emulator is a process group of its own: its functions are processes, too, and end with it.
emulate() {
  rm -rf "$work/emulator.tmp"
  mkdir "$work/emulator.tmp"
  set -m
  "$work/emulator/bin/python" tests/e2e/emulator.py serve > "$EMULATOR_LOG" 2>&1 &
  emulator=$!
  set +m
  trap finish EXIT
  "$work/emulator/bin/python" tests/e2e/emulator.py wait "$emulator"
}

# Ends the emulator, and says where its log is if the run failed.
finish() {
  local status=$?
  for signal in TERM TERM TERM KILL; do
    kill -s "$signal" -- -"$emulator" 2> "$work/kill.log" || break
    sleep 1
  done
  rm -rf "$work/emulator.tmp"
  [ "$status" -eq 0 ] || echo "FAILED. The log of the emulator and its functions: $EMULATOR_LOG" >&2
}

# An emulator of this script's own, which enforces IAM.
own_emulator() {
  local port
  port=${EMULATOR_PORT:-$(python3 tests/e2e/ports.py)}
  # The endpoint must be in the emulator's own environment, from which its functions get theirs.
  export AWS_ENDPOINT_URL=http://127.0.0.1:$port EMULATOR_LOG=$work/emulator.log
  export AUTH=true BIND_HOST=127.0.0.1 GATEWAY_PORT=$port MINISTACK_REGION=$AWS_REGION TMPDIR=$work/emulator.tmp
  phase emulator emulate
}

# deploy_built PARAMETER=VALUE...: what `sam build` has built in the current folder, with these parameters.
deploy_built() {
  sam deploy --stack-name "$stack" --resolve-s3 --capabilities CAPABILITY_IAM --no-confirm-changeset \
    --no-fail-on-empty-changeset --no-progressbar --parameter-overrides "Architecture=$architecture" "$@"
  if [ "$mode" != aws ]; then
    "$work/emulator/bin/python" "$root/tests/e2e/emulator.py" complete "$stack"
  fi
}

root=$PWD
export SAM_CLI_TELEMETRY=0 PATH="$work/sam/bin:$PATH" PYTHONPYCACHEPREFIX=$work/pycache
if [ "$mode" = own ]; then
  # An AWS account of the user's is not used here.
  unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
fi
if [ "$mode" != aws ]; then
  export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}
  export AWS_REGION=${AWS_REGION:-eu-west-1} AWS_EC2_METADATA_DISABLED=true
  export AWS_DEFAULT_REGION=$AWS_REGION
fi
case $(uname -m) in
  x86_64) architecture=x86_64 ;;
  *) architecture=arm64 ;;
esac
[ "$mode" != aws ] || architecture=arm64
mkdir -p "$work"

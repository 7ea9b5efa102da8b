#!/bin/sh
# The batch API: a program that is started once per batch. The batch is JSON on its standard input. If the program prints
# nothing and ends with status 0, every member has succeeded.
set -eu

batch=$(cat)
# Your work.
printf '%s\n' "$batch" >> batches.log

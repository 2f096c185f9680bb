#!/bin/sh
# report.sh: stands for the work in the examples.
echo "report written, fence ${INTERLOCK_FENCE:-none}"

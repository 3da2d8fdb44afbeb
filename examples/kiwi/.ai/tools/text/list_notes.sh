#!/usr/bin/env bash
# Lists the notes of the project, each with its first line
# version: 1.0.0
# tool_type: script
# category: text
# permissions: {read: ["notes/**"]}

set -euo pipefail
project=.
while [ $# -gt 0 ]; do
  case "$1" in
    --project-path) project=$2; shift 2 ;;
    *) shift ;;
  esac
done
for note in "$project"/notes/*.md; do
  read -r first < "$note"
  printf '%s\t%s\n' "$(basename "$note")" "$first"
done

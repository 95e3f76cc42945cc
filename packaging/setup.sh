#!/bin/sh
# Finds a Python that Draftscope runs on and hands over to bootstrap.py. Arguments are passed on.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# Each candidate is really started: a name on the PATH may be a shim without a Python behind it.
for python in "${PYTHON:-}" python3 python3.13 python3.12 python3.14 python3.11; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 &&
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1; then
        exec "$python" "$here/bootstrap.py" "$@"
    fi
done

echo "Draftscope needs Python 3.11, 3.12, 3.13 or 3.14, and none was found; install one (on Debian and Ubuntu: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3 …" >&2
exit 1

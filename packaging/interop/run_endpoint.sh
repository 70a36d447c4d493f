#!/bin/bash
# Started by the interop runner in the container of either end; the environment says the rest.
set -e

# Routes through the simulated network.
/setup.sh

[ -z "$QLOGDIR" ] || mkdir -p "$QLOGDIR"

if [ "$ROLE" = client ]; then
    # The simulator says on this port that the network is there.
    /wait-for-it.sh sim:57832 -s -t 30
fi

# The addresses to which clients are to move: what the simulator gives a server.
if [ "$ROLE" = server ] && [ "$TESTCASE" = connectionmigration ]; then
    set -- --also-listen '[::]:4443' \
        --preferred-v4 193.167.100.100:4443 --preferred-v6 '[fd00:cafe:cafe:100::100]:4443' "$@"
fi

exec godwit interop "$@"

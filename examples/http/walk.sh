#!/bin/sh
# A walk through the HTTP service with curl:  sh examples/http/walk.sh http://127.0.0.1:8000
# With tokens: TOKEN=rl_... sh examples/http/walk.sh https://lab.example
set -eu
LAB=${1:-http://127.0.0.1:8000}
HERE=$(dirname "$0")/..
ask() {
    if [ -n "${TOKEN:-}" ]; then
        curl --silent --show-error --fail-with-body -H "authorization: Bearer $TOKEN" "$@"
    else
        curl --silent --show-error --fail-with-body "$@"
    fi
}
short() { cut -c1-150; }

echo "== it lives, and knows these strategies"
ask "$LAB/healthz"; echo
ask "$LAB/v1/strategies" | short

echo "== an assignment, exactly as Kafka's sticky assignor makes it"
ask -H 'content-type: application/json' -d @"$HERE/orders.json" "$LAB/v1/assign?strategy=classic/sticky" | short

echo "== every strategy on the same group"
ask -H 'content-type: application/json' -d @"$HERE/orders.json" "$LAB/v1/compare-assignments" | short

echo "== a problem says where"
curl --silent ${TOKEN:+-H "authorization: Bearer $TOKEN"} -H 'content-type: application/json' \
    -d '{"strategy": "sticky", "group": {"topics": {}, "members": {"c1": {"topics": [5]}}}}' "$LAB/v1/assign"; echo

echo "== how many partitions"
ask -H 'content-type: application/json' -d '{"target": "5k/s", "per_consumer": "600/s"}' "$LAB/v1/size" | short

echo "== a simulation: submit, follow, fetch, forget"
JOB=$(ask -H 'content-type: application/yaml' --data-binary @"$HERE/scenarios/rolling_deploy.yaml" \
    "$LAB/v1/simulations?strategy=classic/cooperative-sticky" | sed 's/.*"id": "\([^"]*\)".*/\1/')
ask --no-buffer "$LAB/v1/simulations/$JOB/events" | grep '^event' | sort | uniq -c | sed 's/[0-9][0-9]* event: progress/  ... event: progress/'
ask "$LAB/v1/simulations/$JOB/result" | short
ask -X DELETE "$LAB/v1/simulations/$JOB"

echo "== which strategy to take"
ask -H 'content-type: application/yaml' --data-binary @"$HERE/scenarios/rolling_deploy.yaml" \
    "$LAB/v1/recommend?seeds=1&strategies=classic/range,classic/cooperative-sticky" | short

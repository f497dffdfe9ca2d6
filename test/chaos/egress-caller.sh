#!/bin/sh
# A service of long ago: it knows no tokens and no keys, and asks once for each write.
#
#   egress-caller.sh URL PREFIX COUNT
#
# Prints for each write its id, the status, the exit code of curl, and what stands in Proxy-Status.
url=$1 prefix=$2 count=$3 number=0
while [ "$number" -lt "$count" ]; do
  id="$prefix-$number"
  curl -q --silent --max-time 20 --output /dev/null \
    --header 'Content-Type: application/json' --data "{\"id\":\"$id\",\"note\":\"written by a shell\"}" \
    --write-out "$id %{http_code} %{exitcode} %header{x-sallyport-attempts} %header{proxy-status}\n" "$url"
  [ $? -eq 7 ] && sleep 1
  number=$((number + 1))
  sleep 0.2
done

#!/bin/sh
# Draws the password of a composed service's store, and writes the store's address with it to a directory, where
# docker-compose.yml and the overlays of deploy/kubernetes read it. What is there already stays.
set -eu
directory="${1:-$(dirname "$0")/secrets}"
[ -e "$directory/redis_url" ] && exit
# Nobody else gets through the directory. The file itself is read in a container, by a user of another number.
(umask 077 && mkdir -p "$directory")
password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
printf 'redis://bochner:%s@store:6379/0' "$password" > "$directory/redis_url"
chmod 0444 "$directory/redis_url"

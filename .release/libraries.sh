#!/bin/sh
# Copies the shared libraries that some files ask for, and the licences of the packages that these come from, below another root:
#   sh .release/libraries.sh ROOT FILE...
set -eu
root=$1
shift
list=$(mktemp -d)
ldd "$@" | awk '/=> \// { print $3 } /^\t\// { print $1 }' | sort -u > "$list/libraries"
xargs -I{} cp --parents -L {} "$root" < "$list/libraries"
# Debian's packages name their files without the link from /lib to /usr/lib.
sed 's,^/\(usr/\)\?,,' "$list/libraries" | xargs dpkg-query --search > "$list/owners"
cut -d: -f1 "$list/owners" | sort -u | xargs -I{} cp --parents -L /usr/share/doc/{}/copyright "$root"
rm -r "$list"

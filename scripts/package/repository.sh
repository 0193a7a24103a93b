#!/usr/bin/env bash
# Writes repositories of packages, signed, for apt and for dnf, from target/package/out: folders for any web server.
#
#   scripts/package/repository.sh
#
# What comes out, in target/package/repository:
#   apt/          pool and dists/stable, for each architecture that was built
#   rpm/          the RPM packages (rpm.sh makes them) and their repodata
#   mayfly.asc    the public key; mayfly.sources and mayfly.repo name it, with the address MAYFLY_REPOSITORY_URL
#
# MAYFLY_REPOSITORY_KEY is the fingerprint of a key of gpg's, which signs. Without it a key is made for a trial, in
# target/package/trial-key: nobody should be told to trust it.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/package
out=$work/out place=$work/repository
url=${MAYFLY_REPOSITORY_URL:-https://packages.example.org}
key=${MAYFLY_REPOSITORY_KEY:-}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8

scripts/package/rpm.sh
if [ -z "$key" ]; then
    export GNUPGHOME=$work/trial-key
    mkdir -p -m 700 "$GNUPGHOME"
    gpg --batch --list-secret-keys "=Mayfly, a key for a trial" >/dev/null 2>&1 ||
        gpg --batch --quiet --passphrase '' --quick-generate-key "Mayfly, a key for a trial" ed25519 sign 0
    key=$(gpg --batch --with-colons --list-secret-keys "=Mayfly, a key for a trial" | sed -n 's/^fpr:*\([0-9A-F]*\):.*/\1/p' | head -1)
fi

rm -rf "$place"
mkdir -p "$place/apt/pool" "$place/rpm"
gpg --batch --armor --export "$key" >"$place/mayfly.asc"

# apt: lists of packages, then what is signed.
for file in "$out"/mayfly*.deb; do
    case $(basename "$file") in *-dbgsym_*) ;; *) cp "$file" "$place/apt/pool/" ;; esac
done
architectures=$(cd "$place/apt/pool" && printf '%s\n' *.deb | sed 's/.*_\(.*\)\.deb/\1/' | sort -u)
for architecture in $architectures; do
    folder=dists/stable/main/binary-$architecture
    mkdir -p "$place/apt/$folder"
    (cd "$place/apt" && apt-ftparchive --arch "$architecture" packages pool >"$folder/Packages")
    xz --keep -9 "$place/apt/$folder/Packages"
done
(cd "$place/apt" && apt-ftparchive -o APT::FTPArchive::Release::Origin=Mayfly -o APT::FTPArchive::Release::Suite=stable \
    -o APT::FTPArchive::Release::Codename=stable -o APT::FTPArchive::Release::Components=main \
    -o "APT::FTPArchive::Release::Architectures=$(echo $architectures)" release dists/stable >"$work/Release")
mv "$work/Release" "$place/apt/dists/stable/Release"
gpg --batch --yes --local-user "$key" --clearsign --output "$place/apt/dists/stable/InRelease" "$place/apt/dists/stable/Release"
gpg --batch --yes --local-user "$key" --armor --detach-sign --output "$place/apt/dists/stable/Release.gpg" "$place/apt/dists/stable/Release"

# dnf: each package is signed, and so is their list.
cp "$out"/mayfly*.rpm "$place/rpm/"
rpmsign --define "__gpg $(command -v gpg)" --define "_gpg_name $key" --define "_gpg_digest_algo sha256" --addsign "$place"/rpm/*.rpm >/dev/null
createrepo_c --quiet --set-timestamp-to-revision --revision "$SOURCE_DATE_EPOCH" "$place/rpm"
gpg --batch --yes --local-user "$key" --armor --detach-sign "$place/rpm/repodata/repomd.xml"

cat >"$place/mayfly.sources" <<END
Types: deb
URIs: $url/apt
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/mayfly.asc
END
cat >"$place/mayfly.repo" <<END
[mayfly]
name=Mayfly
baseurl=$url/rpm
gpgcheck=1
repo_gpgcheck=1
gpgkey=$url/mayfly.asc
END
echo "$place: apt for $(echo $architectures), $(ls "$place"/rpm/*.rpm | wc -l) RPM packages, signed by $key"

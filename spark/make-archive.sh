#!/bin/sh
# Makes the archive that brings FactorFlow to Spark's executors: Node, the package with its dependencies, and bin/factorflow.
# Downloads nothing: the dependencies are copied from node_modules of this checkout.
#
#     npm ci && npm run build && spark/make-archive.sh [PACKAGE [OUTPUT [NODE]]]
#
# PACKAGE: a file of `npm pack`; by default, or with "", this checkout as it is built.
# OUTPUT: factorflow.tar.gz by default.    NODE: the executable to include, by default the one on PATH, for the executors' system.
# Use: spark-submit --archives factorflow.tar.gz#factorflow ...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
version=$(sed -n 's/^  <version>\(.*\)<\/version>$/\1/p' "$here/pom.xml")
package=${1:-}
output=${2:-factorflow.tar.gz}
node=${3:-$(node -p process.execPath)}

fail() {
  echo "make-archive: $1" >&2
  exit 2
}

"$node" -e '
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 12)) process.exit();
  console.error(`make-archive: ${process.execPath} is Node ${process.versions.node}, and FactorFlow needs 22.12 or newer. Name another one as third argument`);
  process.exit(2);
'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -z "$package" ]; then
  [ -f "$root/dist/programs/cli/main.js" ] || fail "this checkout is not built: npm ci && npm run build, or name a file of npm pack"
  package=$folder/$(cd "$root" && npm pack --silent --ignore-scripts --pack-destination "$folder")
fi
[ -f "$package" ] || fail "there is no file $package: name a file of npm pack, or nothing for this checkout"
mkdir -p "$folder/archive/bin" "$folder/archive/node_modules/factorflow"
tar -xzf "$package" -C "$folder/archive/node_modules/factorflow" --strip-components 1

# The dependencies in the versions of package-lock.json, which has marks for those of development alone.
"$node" - "$root" "$folder/archive" "$version" <<'END'
const [root, archive, version] = process.argv.slice(2);
const { cpSync, existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const fail = (reason) => {
  console.error(`make-archive: ${reason}`);
  process.exit(2);
};
const given = read(join(archive, 'node_modules/factorflow/package.json'));
if (given.version !== version) fail(`the package is ${given.name} ${given.version}, and the plugin needs factorflow ${version}`);
const own = read(join(root, 'package.json'));
for (const kind of ['dependencies', 'optionalDependencies']) {
  if (JSON.stringify(given[kind]) !== JSON.stringify(own[kind])) fail(`the package has other ${kind} than this checkout, from which they are copied`);
}
for (const [path, { dev, optional, devOptional, version: wanted }] of Object.entries(read(join(root, 'package-lock.json')).packages)) {
  if (path === '' || dev) continue;
  const from = join(root, path);
  if (!existsSync(from)) {
    if (optional || devOptional) continue;
    fail(`${path} is missing: run npm ci`);
  }
  const installed = read(join(from, 'package.json')).version;
  if (installed !== wanted) fail(`${path} is ${installed}, and package-lock.json has ${wanted}: run npm ci`);
  cpSync(from, join(archive, path), { recursive: true, filter: (file) => !file.slice(from.length).includes('/node_modules') });
}
END
cp "$node" "$folder/archive/bin/node"
cat > "$folder/archive/bin/factorflow" <<'END'
#!/bin/sh
# exec: a signal to this process is one to Node
bin=$(dirname "$0")
exec "$bin/node" "$bin/../node_modules/factorflow/dist/programs/cli/main.js" "$@"
END
chmod 755 "$folder/archive/bin/node" "$folder/archive/bin/factorflow"
tar -czf "$output" -C "$folder/archive" bin node_modules
echo "$output: factorflow $version, Node $("$node" -p process.versions.node), $(du -h "$output" | cut -f1)"

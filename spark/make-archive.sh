#!/bin/sh
# Makes the archive that brings FactorFlow to Spark's executors: Node, the package with its dependencies, and bin/factorflow.
#
#     spark/make-archive.sh [PACKAGE [OUTPUT [NODE]]]
#
# PACKAGE: what npm installs, by default factorflow in the plugin's version; a file of `npm pack` serves as well.
# OUTPUT: factorflow.tar.gz by default.    NODE: the executable that goes along, by default the one on PATH, for the executors' system.
# Use: spark-submit --archives factorflow.tar.gz#factorflow ...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^  <version>\(.*\)<\/version>$/\1/p' "$here/pom.xml")
package=${1:-factorflow@$version}
output=${2:-factorflow.tar.gz}
node=${3:-$(node -p process.execPath)}

"$node" -e '
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 12)) process.exit();
  console.error(`make-archive: ${process.execPath} is Node ${process.versions.node}, and FactorFlow needs 22.12 or newer. Name another one as third argument`);
  process.exit(2);
'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-fund --no-audit --omit=dev --prefix "$folder" "$package"
installed=$("$node" -p 'require(process.argv[1]).version' "$folder/node_modules/factorflow/package.json")
if [ "$installed" != "$version" ]; then
  echo "make-archive: $package is factorflow $installed, and the plugin needs $version" >&2
  exit 2
fi
mkdir "$folder/bin"
cp "$node" "$folder/bin/node"
cat > "$folder/bin/factorflow" <<'END'
#!/bin/sh
# exec: a signal to this process is one to Node
bin=$(dirname "$0")
exec "$bin/node" "$bin/../node_modules/factorflow/dist/programs/cli/main.js" "$@"
END
chmod 755 "$folder/bin/node" "$folder/bin/factorflow"
tar -czf "$output" -C "$folder" bin node_modules
echo "$output: factorflow $installed, Node $("$node" -p process.versions.node), $(du -h "$output" | cut -f1)"

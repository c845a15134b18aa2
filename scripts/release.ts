/**
 * `npm run release`: builds all files of a release in build/release, with SHA256SUMS and provenance.json.
 * With `--spark` only the jars of the plugin for Spark and the wheel for PySpark.
 * Needs Java 17, Maven, Python 3 with pip, and the network for what Maven and pip do not have yet.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { buildPythonWheels } from './python-artifacts.ts';
import { buildJars, buildWheel } from './spark-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const target = join(root, 'build/release');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

const run = (command: string, args: readonly string[]): void => {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
};
const output = (command: string, args: readonly string[]): string =>
  execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

const changed = output('git', ['status', '--porcelain']);
if (changed !== '' && !process.argv.includes('--allow-changes'))
  throw new Error(`the checkout has changes that no commit has (--allow-changes builds anyway):\n${changed}`);

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const isWhole = !process.argv.includes('--spark');
// Also builds: package.json has the script prepack.
if (isWhole) run('npm', ['pack', '--silent', '--pack-destination', target]);
const jars = buildJars(run);
for (const jar of Object.values(jars) as string[]) cpSync(jar, join(target, basename(jar)));
const wheel = buildWheel(run, { jars, folder: join(root, 'build/spark/wheel') });
cpSync(wheel, join(target, basename(wheel)));
if (isWhole) {
  for (const one of buildPythonWheels(run, join(root, 'build/python/wheel')))
    cpSync(one, join(target, basename(one)));
  run('spark/make-archive.sh', [
    join(target, `factorflow-${version}.tgz`),
    join(target, `factorflow-${version}-${process.platform}-${process.arch}.tar.gz`),
    process.execPath,
  ]);
}

const files = readdirSync(target).sort();
const sums = files.map((name) => ({ name, bytes: statSync(join(target, name)).size, sha256: sha256(name) }));
writeFileSync(join(target, 'SHA256SUMS'), sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''));
const provenance = {
  version,
  commit: output('git', ['rev-parse', 'HEAD']),
  changes: changed === '' ? [] : changed.split('\n'),
  date: new Date().toISOString(),
  built: {
    platform: `${process.platform}-${process.arch}`,
    node: process.versions.node,
    npm: output('npm', ['--version']),
    java: output('java', ['--version']).split('\n')[0],
    maven: stripVTControlCharacters(output('mvn', ['--batch-mode', '--version'])).split('\n')[0],
    python: output('python3', ['--version']),
  },
  files: sums,
};
writeFileSync(join(target, 'provenance.json'), `${JSON.stringify(provenance, null, 2)}\n`);
for (const { name, bytes } of sums) console.log(`build/release/${name}  ${(bytes / 1e6).toFixed(1)} MB`);
console.log('build/release/SHA256SUMS\nbuild/release/provenance.json');

function sha256(name: string): string {
  return createHash('sha256')
    .update(readFileSync(join(target, name)))
    .digest('hex');
}

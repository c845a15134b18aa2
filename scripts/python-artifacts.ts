/**
 * Builds the Python package: `node scripts/python-artifacts.ts [FOLDER] [--own]`, by default all wheels in
 * build/python/wheel. A wheel has this checkout as it is built, with its dependencies. Only WebGPU is native:
 * each platform has a wheel with its files, and one wheel without WebGPU is for all other systems. pip takes
 * the one that fits. `--own` builds the wheel of this platform alone.
 */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Run } from './spark-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const program = 'dist/programs/cli/main.js';
const WEBGPU = 'node_modules/webgpu';

/**
 * Platforms of wheels by the folder of their files in the package webgpu. Of Linux: the oldest C library that
 * these files accept.
 */
export const platforms: Readonly<Record<string, readonly string[]>> = {
  'linux-x64': ['manylinux_2_34_x86_64'],
  'linux-arm64': ['manylinux_2_34_aarch64'],
  'darwin-universal': ['macosx_12_0_x86_64', 'macosx_12_0_arm64'],
  'win32-x64': ['win_amd64'],
  'win32-arm64': ['win_arm64'],
};

/** Packages for one platform that no program needs: Piscina uses this one for threads of low priority. */
const unneeded = /^node_modules\/@napi-rs\//;

/** Parts of the npm package that no program reads. */
const unused = ['docs', 'examples', 'engine', 'gpu', 'operators', 'dist/types'];

/** Files of packages that no program reads. */
const unread = /\.(map|d\.[cm]?ts|md|markdown|test\.js)$|\/(test|tests|docs|examples|coverage|\.github)\//;

/** Builds a wheel for each platform and one for all others in `folder`, which is emptied; returns their paths. */
export function buildPythonWheels(run: Run, folder: string): string[] {
  rmSync(folder, { recursive: true, force: true });
  for (const files of [...Object.keys(platforms), undefined]) buildWheels(run, folder, files);
  return globSync('*.whl', { cwd: folder })
    .sort()
    .map((wheel) => join(folder, wheel));
}

/** Builds the wheel of this platform in `folder`, which is emptied; returns its path. */
export function buildOwnWheel(run: Run, folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  const files = `${process.platform}-${process.platform === 'darwin' ? 'universal' : process.arch}`;
  buildWheels(run, folder, files in platforms ? files : undefined);
  return join(folder, globSync('*.whl', { cwd: folder })[0]);
}

/** Builds the wheels with one folder of WebGPU's files, or the wheel without WebGPU. */
function buildWheels(run: Run, folder: string, files: string | undefined): void {
  const target = join(root, 'python/factorflow/js');
  // setuptools keeps files of earlier builds there.
  for (const old of [target, join(root, 'python/build'), join(root, 'python/factorflow.egg-info')])
    rmSync(old, { recursive: true, force: true });
  copyPackage(run, target);
  copyDependencies(target, files);
  mkdirSync(folder, { recursive: true });
  for (const platform of files === undefined ? ['any'] : platforms[files])
    run('python3', [
      '-m',
      'pip',
      'wheel',
      '-q',
      '--no-deps',
      '-w',
      folder,
      `--config-settings=--build-option=--plat-name=${platform}`,
      join(root, 'python'),
    ]);
}

/** The files of the npm package, without those for people and compilers. */
function copyPackage(run: Run, target: string): void {
  if (!existsSync(join(root, program))) throw new Error('this checkout is not built: npm run build');
  const own = join(target, 'node_modules/factorflow');
  mkdirSync(own, { recursive: true });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', target]);
  const [packed] = globSync('*.tgz', { cwd: target });
  run('tar', ['-xzf', join(target, packed), '-C', own, '--strip-components', '1']);
  for (const name of [packed, ...unused.map((one) => join('node_modules/factorflow', one))])
    rmSync(join(target, name), { recursive: true, force: true });
}

/** The packages of package-lock.json that are installed with this one, in its versions. */
function copyDependencies(target: string, platform: string | undefined): void {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  for (const [path, { dev, optional, devOptional, version }] of Object.entries(packages)) {
    if (path === '' || dev || devOptional || unneeded.test(path)) continue;
    if (path === WEBGPU && platform === undefined) continue;
    const from = join(root, path);
    if (!existsSync(from)) {
      if (optional) continue;
      throw new Error(`${path} is missing: npm ci`);
    }
    const installed = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8')) as LockedPackage;
    if (installed.version !== version)
      throw new Error(`${path} is ${installed.version}, and package-lock.json has ${version}: npm ci`);
    cpSync(from, join(target, path), {
      recursive: true,
      filter: (file) => isRead(path, file.slice(from.length), platform),
    });
  }
}

interface LockedPackage {
  readonly version: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

/** False for files that the program never reads, and for native files of other platforms. */
function isRead(path: string, file: string, platform: string | undefined): boolean {
  if (file.includes('/node_modules')) return false;
  if (path === WEBGPU) return isOfPlatform(file, platform);
  if (unread.test(file) && !/licen[cs]e/i.test(file)) return false;
  return true;
}

function isOfPlatform(file: string, platform: string | undefined): boolean {
  const [, folder] = /^\/dist\/([^/]+)/.exec(file) ?? [];
  if (file.startsWith('/build')) return false;
  return folder === undefined || folder === platform;
}

if (process.argv[1] === import.meta.filename) {
  const { execFileSync } = await import('node:child_process');
  const { statSync } = await import('node:fs');
  const run: Run = (command, args) => {
    execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  };
  const { values, positionals } = parseArgs({
    options: { own: { type: 'boolean' } },
    allowPositionals: true,
  });
  const folder = resolve(positionals[0] ?? join(root, 'build/python/wheel'));
  for (const wheel of values.own ? [buildOwnWheel(run, folder)] : buildPythonWheels(run, folder))
    console.log(`${wheel}  ${(statSync(wheel).size / 1e6).toFixed(1)} MB`);
}

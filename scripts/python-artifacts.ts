/**
 * Builds the Python package: `node scripts/python-artifacts.ts [FOLDER]`, by default build/python/wheel. The
 * wheel has this checkout as it is built, with its dependencies; of native packages it has the files of this
 * platform.
 */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Run } from './spark-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const program = 'dist/programs/cli/main.js';

/**
 * Platforms of wheels by Node's name of the platform. Of Linux: the oldest C library that Dawn (webgpu)
 * accepts.
 */
const platforms: Readonly<Record<string, string>> = {
  'linux-x64': 'manylinux_2_34_x86_64',
  'linux-arm64': 'manylinux_2_34_aarch64',
  'darwin-x64': 'macosx_12_0_x86_64',
  'darwin-arm64': 'macosx_12_0_arm64',
  'win32-x64': 'win_amd64',
  'win32-arm64': 'win_arm64',
};

/** Parts of the npm package that no program reads. */
const unused = ['docs', 'examples', 'engine', 'gpu', 'operators', 'dist/types'];

/** Files of packages that no program reads. */
const unread = /\.(map|d\.[cm]?ts|md|markdown|test\.js)$|\/(test|tests|docs|examples|coverage|\.github)\//;

/** Builds the wheel in `folder`, which is emptied; returns its path. */
export function buildPythonWheel(run: Run, folder: string): string {
  const target = join(root, 'python/factorflow/js');
  // setuptools keeps files of earlier builds there.
  for (const old of [target, join(root, 'python/build'), join(root, 'python/factorflow.egg-info'), folder])
    rmSync(old, { recursive: true, force: true });
  copyPackage(run, target);
  copyDependencies(target);
  mkdirSync(folder, { recursive: true });
  const platform = platforms[`${process.platform}-${process.arch}`];
  if (platform === undefined) throw new Error(`there is no wheel for ${process.platform}-${process.arch}`);
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
  const [wheel] = globSync('*.whl', { cwd: folder });
  return join(folder, wheel);
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
function copyDependencies(target: string): void {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  for (const [path, { dev, optional, devOptional, version }] of Object.entries(packages)) {
    if (path === '' || dev || devOptional) continue;
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
      filter: (file) => isRead(path, file.slice(from.length)),
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
function isRead(path: string, file: string): boolean {
  if (file.includes('/node_modules')) return false;
  if (path === 'node_modules/webgpu') return isOwnPlatform(file);
  if (unread.test(file) && !/licen[cs]e/i.test(file)) return false;
  return true;
}

function isOwnPlatform(file: string): boolean {
  const arch = process.platform === 'darwin' ? 'universal' : process.arch;
  const [, folder] = /^\/dist\/([^/]+)/.exec(file) ?? [];
  if (file.startsWith('/build')) return false;
  return folder === undefined || folder === `${process.platform}-${arch}`;
}

if (process.argv[1] === import.meta.filename) {
  const { execFileSync } = await import('node:child_process');
  const run: Run = (command, args) => {
    execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  };
  const wheel = buildPythonWheel(run, resolve(process.argv[2] ?? join(root, 'build/python/wheel')));
  const { statSync } = await import('node:fs');
  console.log(`${wheel}  ${(statSync(wheel).size / 1e6).toFixed(1)} MB`);
}

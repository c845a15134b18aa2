/** Steps of tests that need tools or packages which a machine may lack: they say so, and do not fail. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Run } from './spark-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const noNetwork =
  /Unknown host|name resolution|Network is unreachable|Connection refused|Failed to establish a new connection/;

/** Ends the process with a message and without failure. `tests`: their name. */
export function notRun(tests: string, reason: string): never {
  console.error(`\n== NOT RUN: ${tests}, since ${reason}`);
  process.exit(0);
}

/** Runs programs in the repository's root; without network it ends the process as `notRun` does. */
export function runner(tests: string): Run {
  return (command, args) => {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    if (status === 0) return;
    const said = `${stdout}${stderr}`;
    if (noNetwork.test(said)) notRun(tests, `${command} reaches no network`);
    console.error(said);
    throw new Error(`${command} ${args.join(' ')} ended with ${String(status)}`);
  };
}

/** True if `python3` is this version or newer, with venv. */
export function hasPython(version: readonly [number, number]): boolean {
  const program = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${version.join(', ')}))`;
  return spawnSync('python3', ['-c', program]).status === 0;
}

/**
 * Creates, once, an environment of Python with the packages of a requirements file, and installs the wheel
 * again. Returns its Python.
 */
export function environment(run: Run, folder: string, requirements: string, wheel: string): string {
  const python = join(folder, 'bin/python');
  const stamp = join(folder, 'installed.txt');
  const wanted = readFileSync(requirements, 'utf8');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    rmSync(folder, { recursive: true, force: true });
    run('python3', ['-m', 'venv', folder]);
    run(python, ['-m', 'pip', 'install', '-q', '--no-deps', '-r', requirements]);
    writeFileSync(stamp, wanted);
  }
  const flags = ['-q', '--no-deps', '--no-index', '--force-reinstall'];
  run(python, ['-m', 'pip', 'install', ...flags, wheel]);
  return python;
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '../..');

/** A Node to run programs with, and its version. */
export interface TestNode {
  readonly path: string;
  readonly version: string;
  /** The reason for this process's own Node, where the oldest one is not at hand. */
  readonly note?: string;
}

/**
 * The oldest Node that package.json's "engines" admits, from npm, kept in build/. This process's own Node
 * where npm has none for this platform or cannot be reached.
 */
export async function oldestNode(): Promise<TestNode> {
  const { engines } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string };
  };
  const version = `${engines.node.replace('>=', '')}.0`;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(root, 'build/nodes', version);
  const path = join(folder, 'node_modules', name, 'bin/node');
  try {
    if (!existsSync(path)) await install(`${name}@${version}`, folder);
    const { stdout } = await promisify(execFile)(path, ['--version']);
    return { path, version: stdout.trim() };
  } catch (error) {
    const note = `Node ${version} is not at hand (${error instanceof Error ? error.message.split('\n')[0] : String(error)}): run with ${process.version}`;
    console.warn(note);
    return { path: process.execPath, version: process.version, note };
  }
}

/** Installs into a temporary folder and renames it: test files that run at the same time may both do this. */
async function install(spec: string, folder: string): Promise<void> {
  const parent = join(folder, '..');
  await mkdir(parent, { recursive: true });
  const unfinished = await mkdtemp(join(parent, 'unfinished-'));
  try {
    await promisify(execFile)(
      'npm',
      [
        'install',
        '--prefix',
        unfinished,
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--fetch-retries=0',
        spec,
      ],
      { cwd: unfinished, timeout: 120_000 },
    );
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

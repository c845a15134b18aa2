import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll } from 'vitest';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const root = resolve(import.meta.dirname, '../..');
let folder: string | undefined;
let started = 0;

/** A folder of the test file that calls it, removed at the end. */
export function reproduceFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'factorflow-reproduce-'));
  folder = made;
  afterAll(() => rmSync(made, { recursive: true }));
  return made;
}

/** `npm run reproduce -- ARGS`, without the build before it, with a work folder of its own. */
export function reproduce(...args: readonly string[]): Promise<Ended> {
  if (folder === undefined) throw new Error('reproduceFolder comes first');
  const program = join(root, 'scripts/reproduce/reproduce.ts');
  const all = [program, ...args, '--work', join(folder, `work-${started++}`)];
  return new Promise((done) => {
    execFile(process.execPath, all, { cwd: root }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

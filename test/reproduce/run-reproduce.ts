import { join, resolve } from 'node:path';
import { type Outcome, startProcess } from '../support/start-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: string | undefined;
let started = 0;

/** A folder of the test file that calls it, removed at the end. */
export function reproduceFolder(): string {
  folder = temporaryFolder();
  return folder;
}

/** `npm run reproduce -- ARGS`, without the build before it, with a work folder of its own. */
export function reproduce(...args: readonly string[]): Promise<Outcome> {
  if (folder === undefined) throw new Error('reproduceFolder comes first');
  const program = resolve(import.meta.dirname, '../../scripts/reproduce/reproduce.ts');
  const work = join(folder, `work-${started++}`);
  return startProcess([process.execPath, program, ...args, '--work', work]).outcome;
}

import { closeSync, openSync, statSync, writeSync } from 'node:fs';

/** Changes all bytes of a file, which is never shorter meanwhile. */
export function overwrite(file: string): void {
  const open = openSync(file, 'r+');
  writeSync(open, 'x'.repeat(statSync(file).size));
  closeSync(open);
}

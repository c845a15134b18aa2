import { closeSync, readSync } from 'node:fs';
import { checkWholeFile } from '../../api/output/whole-file.ts';
import { UsageError } from '../../engine/errors.ts';
import { openRegular } from '../../engine/regular-file.ts';

/** Identifies a report of this program; it is in the first bytes of each. */
export const GENERATOR = '<meta name="generator" content="factorflow">';

/** Bytes to read when looking for the mark. */
const HEAD = 256;

/** Checks before the work that the report can be written. Only an earlier report is ever replaced. */
export async function checkReport(path: string): Promise<void> {
  if (!/\.html?$/i.test(path))
    throw new UsageError(`--report takes the name of an HTML file, got ${JSON.stringify(path)}`, {
      advice: 'End it in .html',
    });
  await checkWholeFile(path, isReport(path));
}

/** True for a file that begins with the mark. */
export function isReport(path: string): boolean {
  try {
    const { fd } = openRegular(path);
    const head = Buffer.alloc(HEAD);
    readSync(fd, head);
    closeSync(fd);
    return head.toString('latin1').includes(GENERATOR);
  } catch {
    // The check of outputs rejects files that are not regular, or not readable.
    return false;
  }
}

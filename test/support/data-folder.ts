import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of real rating sets, or undefined with a message about the skipped tests. */
export function dataFolder(set: string): string | undefined {
  const folder = process.env.FACTORFLOW_DATA;
  const path = folder && join(folder, set);
  if (path && existsSync(path)) return path;
  console.warn(
    `skipped: the rating set ${set} is not there (set FACTORFLOW_DATA to the folder of rating sets)`,
  );
  return undefined;
}

import { existsSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { isLossy } from '../../engine/lossy-path.ts';

/** Throws UsageError for a name that is not UTF-8: the file or folder would be written under another name. */
export function refuseLossyName(target: string, phase: string): void {
  for (let path = resolve(target); isLossy(path) && !existsSync(path); path = dirname(path))
    if (isLossy(basename(path)))
      throw new UsageError('the name is not UTF-8, and would be written as another name', {
        phase,
        file: target,
        advice: 'Choose a name in UTF-8, without U+FFFD',
      });
}

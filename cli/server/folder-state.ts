import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * A text that changes when a file of a folder is replaced, added or removed: names, sizes, times and inodes
 * of all files. Undefined while the folder is missing, as between the two renames of a replacement.
 */
export async function folderState(folder: string): Promise<string | undefined> {
  try {
    const names = (await readdir(folder, { recursive: true })).sort();
    const hash = createHash('sha256');
    for (const name of names) {
      const { ino, size, mtimeNs } = await stat(join(folder, name), { bigint: true });
      hash.update(`${name}\0${ino}\0${size}\0${mtimeNs}\0`);
    }
    return hash.digest('hex');
  } catch {
    // A file that is removed in between: the next look will show another state.
    return undefined;
  }
}

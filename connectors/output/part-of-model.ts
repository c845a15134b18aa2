import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Folders of every model, with part files directly inside. */
const folders = ['metadata', 'userFactors', 'itemFactors'];

/** The model that contains a path, as one of its folders or a file in them; undefined for other paths. */
export async function partOfModel(path: string): Promise<string | undefined> {
  for (const folder of [dirname(path), dirname(dirname(path))]) {
    const entries = await readdir(folder).catch((): string[] => []);
    if (folders.every((name) => entries.includes(name))) return folder;
  }
  return undefined;
}

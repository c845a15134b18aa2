import { readdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Folders that all models have: part files lie directly in them. */
const folders = ['metadata', 'userFactors', 'itemFactors'];

/**
 * The model that a path lies in, as its folder or as a file of its folders; undefined for all other paths.
 */
export async function partOfModel(path: string): Promise<string | undefined> {
  for (const folder of [dirname(path), dirname(dirname(path))]) {
    const entries = await readdir(folder).catch((): string[] => []);
    if (folders.every((name) => entries.includes(name))) return folder;
  }
  return undefined;
}

import { readdirSync, readFileSync } from 'node:fs';

/** The names in a folder of the system; none where there is no such folder or it may not be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The text of a file of the system; empty where there is none or it may not be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

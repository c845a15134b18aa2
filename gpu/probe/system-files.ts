import { readdirSync, readFileSync } from 'node:fs';

/** The names in a system folder; empty if it does not exist or may not be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The text of a system file; empty if it does not exist or may not be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

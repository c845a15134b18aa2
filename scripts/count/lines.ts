/** Lines and files of each folder, as git lists them: all that a reader of the code may have to read, but for tests. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export interface Counted {
  readonly lines: number;
  readonly files: number;
}

const root = resolve(import.meta.dirname, '../..');
const counted = /\.(ts|cts|mjs|js|wgsl|py|java|sh|c)$/;

/** Counts by top folder; files of the root itself are under `.`. */
export const countFolders = (): ReadonlyMap<string, Counted> => {
  const folders = new Map<string, Counted>();
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
  for (const file of files.filter((path) => counted.test(path))) {
    const folder = file.includes('/') ? file.slice(0, file.indexOf('/')) : '.';
    const { lines, files: before } = folders.get(folder) ?? { lines: 0, files: 0 };
    const text = readFileSync(join(root, file), 'utf8');
    folders.set(folder, { lines: lines + text.split('\n').length - 1, files: before + 1 });
  }
  return folders;
};

/** The sum of all folders but test/. */
export const countAll = (folders: ReadonlyMap<string, Counted>): Counted => {
  const sources = [...folders].filter(([folder]) => folder !== 'test').map(([, count]) => count);
  return {
    lines: sources.reduce((sum, { lines }) => sum + lines, 0),
    files: sources.reduce((sum, { files }) => sum + files, 0),
  };
};

if (import.meta.main) {
  const folders = countFolders();
  const rows = [...folders, ['all but test', countAll(folders)] as const];
  for (const [folder, { lines, files }] of rows) {
    console.log(`${folder.padEnd(14)}${`${lines}`.padStart(8)} lines${`${files}`.padStart(6)} files`);
  }
}

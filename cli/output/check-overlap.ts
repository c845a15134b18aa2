import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { isUrl } from '../../connectors/files/path-kinds.ts';
import { UsageError } from '../../engine/errors.ts';

/**
 * Throws UsageError when the output would replace an input, or lie in a folder that is read, where the next run would take
 * it for more data. Names that readers pass over ("_models", ".cache") are free. Readers report inputs that do not exist.
 */
export async function refuseOverlap(output: string, inputs: readonly (string | undefined)[]): Promise<void> {
  const target = await realPlace(resolve(output));
  for (const input of inputs) {
    if (input === undefined || input === '-' || isUrl(input)) continue;
    for (const path of await placesOf(input)) {
      const place = await realPlace(resolve(path));
      const fail = (summary: string, advice: string) => new UsageError(summary, { phase: 'write', file: output, advice });
      if (place === target) throw fail(`the output is an input too: ${input}`, 'Choose another output');
      if (place.startsWith(inside(target))) throw fail(`the output would replace a folder that holds an input: ${input}`, 'Choose another output');
      if (!target.startsWith(inside(place)) || relative(place, target).split(sep).some((name) => /^[._]/.test(name))) continue;
      throw fail(`the output would lie in a folder that is read: ${input}`, 'Choose another output, or a name that starts with "_", which readers pass over');
    }
  }
}

/** The files and folders of a pattern, or the path itself; nothing where nothing exists. */
async function placesOf(input: string): Promise<string[]> {
  const exists = await stat(input).then(() => true, () => false);
  if (exists) return [input];
  // Loaded for patterns alone: an error of usage should come at once.
  const { glob, isDynamicPattern } = await import('tinyglobby');
  return !isDynamicPattern(input) ? [] : glob(input, { onlyFiles: false, expandDirectories: false });
}

/** The path with links resolved, also when its last parts do not exist yet. */
async function realPlace(path: string): Promise<string> {
  const parent = dirname(path);
  return realpath(path).catch(async () => (parent === path ? path : join(await realPlace(parent), basename(path))));
}

function inside(folder: string): string {
  return folder.endsWith(sep) ? folder : folder + sep;
}

import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { isIgnored, isUrl, isPattern, staticBase } from '../../connectors/files/path-kinds.ts';
import { recoverInput } from '../../connectors/output/temporaries.ts';
import { UsageError } from '../../engine/errors.ts';

/** Names of the output and the input in messages. */
interface OverlapNames {
  readonly name?: string | undefined;
  readonly inputName?: string | undefined;
  /** True if the output is added to a folder in which inputs stay unchanged. */
  readonly isShared?: boolean | undefined;
}

/**
 * Throws UsageError if the output would replace an input. Also if it would be inside a folder that is read:
 * the next run would read it as data. Names that readers ignore ("_models", ".cache") are allowed there.
 * Inputs that do not exist are left to the readers.
 */
export async function refuseOverlap(
  output: string,
  inputs: readonly (string | undefined)[],
  { name = 'the output', inputName, isShared = false }: OverlapNames = {},
): Promise<void> {
  const target = await realPlace(resolve(output));
  for (const input of inputs) {
    if (input === undefined || input === '-' || isUrl(input)) continue;
    await recoverInput(input);
    const read = inputName === undefined ? input : `${inputName} ${input}`;
    const fail = (problem: string, advice: string) =>
      new UsageError(`${name} ${problem}: ${read}`, { phase: 'write', file: output, advice });
    for (const path of await placesOf(input)) {
      const problem = overlapOf(target, await realPlace(resolve(path)), isShared);
      if (problem !== undefined) throw fail(...problem);
    }
    if (await matches(input, target))
      throw fail(
        'would match the pattern that is read',
        'Choose another output: the next run would read it as well',
      );
  }
}

/** The conflict of an output at `target` with an input at `place`, and advice. */
function overlapOf(
  target: string,
  place: string,
  isShared: boolean,
): [problem: string, advice: string] | undefined {
  if (place === target) return ['is an input too', 'Choose another output'];
  if (place.startsWith(inside(target)) && !isShared)
    return ['would replace a folder that holds an input', 'Choose another output'];
  if (!target.startsWith(inside(place)) || relative(place, target).split(sep).some(isIgnored))
    return undefined;
  return [
    'would be in a folder that is read',
    'Choose another output, or a name that starts with "_", which readers pass over',
  ];
}

/** The files and folders of a pattern, or the path itself; empty if nothing exists. */
async function placesOf(input: string): Promise<string[]> {
  if (await exists(input)) return [input];
  if (!(await isPattern(input))) return [];
  const { glob } = await import('tinyglobby');
  return glob(input, { onlyFiles: false, expandDirectories: false });
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** True for a pattern with wildcards. False if a file has exactly this name. */
async function namesMany(input: string): Promise<boolean> {
  return !(await exists(input)) && isPattern(input);
}

/** True if a pattern matches the target, or a folder that would contain it. */
async function matches(input: string, target: string): Promise<boolean> {
  if (!(await namesMany(input))) return false;
  const { default: picomatch } = await import('picomatch');
  const base = await staticBase(input);
  const below = relative(await realPlace(resolve(base)), target).split(sep);
  if (below[0] === '..') return false;
  const isMatch = picomatch(
    base === '.' ? input.replace(/^\.\//, '') : input.slice(base.length).replace(/^\/+/, ''),
  );
  return below.some(
    (_, depth) => isMatch(below.slice(0, depth + 1).join('/')) && !below.slice(depth).some(isIgnored),
  );
}

/** The path with links resolved, even if its last parts do not exist yet. */
export async function realPlace(path: string): Promise<string> {
  const parent = dirname(path);
  return realpath(path).catch(async () =>
    parent === path ? path : join(await realPlace(parent), basename(path)),
  );
}

/** The prefix of all paths in a folder. */
export function inside(folder: string): string {
  return folder.endsWith(sep) ? folder : folder + sep;
}

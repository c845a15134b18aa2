import { relative, resolve, sep } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { inside, realPlace, refuseOverlap } from '../../api/output/check-overlap.ts';

/** A path of the command line. */
export interface NamedPath {
  /** Its flag; "the output" for an output that is not given by a flag. */
  readonly name?: string;
  readonly path: string;
  /** True for a folder in which other files stay unchanged: the folder of checkpoints. */
  readonly isShared?: boolean;
}

/** The paths that a command reads and writes. */
export interface CommandFiles {
  readonly inputs: readonly NamedPath[];
  /** Outputs that the command itself checks against its inputs. */
  readonly results: readonly NamedPath[];
  readonly others: readonly NamedPath[];
}

/** Names of checkpoints and their lock in the folder. */
const CHECKPOINT_NAME = /^(checkpoint-\d+|lock)$/;

/**
 * Throws UsageError, before any work, if two outputs would have the same path, one would be inside another,
 * or one would replace an input.
 */
export async function refuseCollisions({ inputs, results, others }: CommandFiles): Promise<void> {
  const written = [...results, ...others].filter(({ path }) => path !== '-');
  const placed = await Promise.all(
    written.map(async (output) => ({ ...output, place: await realPlace(resolve(output.path)) })),
  );
  const pairs = placed.flatMap((outer) =>
    placed.filter((one) => one !== outer).map((inner) => ({ outer, inner })),
  );
  for (const { outer, inner } of pairs) {
    const fail = (summary: string) =>
      new UsageError(summary, { phase: 'write', file: inner.path, advice: 'Give each a place of its own' });
    if (inner.place === outer.place) throw fail(`${outer.name} and ${inner.name} are the same place`);
    if (!inner.place.startsWith(inside(outer.place))) continue;
    const [first] = relative(outer.place, inner.place).split(sep);
    if (!outer.isShared || CHECKPOINT_NAME.test(first)) throw fail(`${inner.name} is inside ${outer.name}`);
  }
  for (const output of others) {
    if (output.path === '-') continue;
    for (const input of inputs)
      await refuseOverlap(output.path, [input.path], { ...output, inputName: input.name });
  }
}

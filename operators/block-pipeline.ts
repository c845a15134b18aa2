import { CancelledError } from '../engine/errors.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import type { GridBlock } from '../engine/plan/grid-order.ts';

/** What happens with each block of a grid whose row bands have a device each. */
export interface BlockWork {
  /** Whether devices work in order: then a block may be begun before the one before it in its row band has ended. */
  readonly inOrder: boolean;
  /** Whether a column band is with one device at a time; else all may read it at once. */
  readonly exclusive: boolean;
  /** Sends the block's ratings ahead to its device; nobody waits for them there. */
  stage(block: GridBlock, signal: AbortSignal): Promise<void>;
  /** Sends the block's task. `ended`: the task has. `freed`: the next device may have the column band. */
  begin(block: GridBlock, signal: AbortSignal): { readonly ended: Promise<void>; readonly freed: Promise<void> };
  /** The block's ratings are not needed on the device any more. */
  leave(block: GridBlock): void;
}

/**
 * Runs blocks in the given order on the devices of their row bands (cuMF_SGD, section 4). A device works on one block of
 * its band at a time, and while it does its next block comes: its ratings at once, its column band as soon as the
 * block before it in that band has freed it, and nobody waits for anything else. At most two blocks' ratings are on a device at a time.
 *
 *     device 0   stage a | a ......... | b ......... | c
 *                          stage b       stage c         b's columns come from device 1, a's go there
 *     device 1   stage d | d ......... | e ......... |
 *
 * The first failure cancels the others; it is thrown once all have ended. `onDone` hears each block that is done.
 */
export async function runBlockPipeline(ctx: ExecutionContext, stage: string, blocks: readonly GridBlock[], work: BlockWork, onDone?: (block: GridBlock) => void): Promise<void> {
  const start = performance.now();
  const failure = new AbortController();
  const signal = AbortSignal.any([ctx.signal, failure.signal]);
  let failed: { readonly error: unknown } | undefined;
  const caught = (promise: Promise<void>): Promise<void> =>
    promise.catch((error: unknown) => {
      failed ??= { error };
      failure.abort();
    });
  const turns = columnTurns(blocks);
  const band = async (mine: readonly GridBlock[]): Promise<void> => {
    const sent: Promise<void>[] = [];
    const send = (block: GridBlock | undefined) => void (block && !signal.aborted && sent.push(caught(work.stage(block, signal))));
    let before: { readonly block: GridBlock; readonly ended: Promise<void> } | undefined;
    send(mine[0]);
    for (const [at, block] of mine.entries()) {
      const { free, pass } = turns.get(block) as Turn;
      if (work.exclusive) await free;
      if (!work.inOrder) await before?.ended;
      if (signal.aborted) {
        pass();
        continue;
      }
      const begun = begin(block, signal, work);
      const ended = caught(begun.ended).then(() => void (signal.aborted || onDone?.(block)));
      sent.push(ended, caught(begun.freed).then(pass));
      // The one before has to leave before the next one comes.
      if (before !== undefined) {
        await before.ended;
        work.leave(before.block);
      }
      send(mine[at + 1]);
      before = { block, ended };
    }
    await Promise.all(sent);
    if (before !== undefined) work.leave(before.block);
  };
  await Promise.all([...Map.groupBy(blocks, ({ row }) => row).values()].map(band));
  ctx.metrics.addWall(stage, performance.now() - start);
  if (ctx.signal.aborted) throw new CancelledError({ phase: stage });
  if (failed !== undefined) throw failed.error;
}

/** What begins no block has failed to. */
function begin(block: GridBlock, signal: AbortSignal, work: BlockWork): ReturnType<BlockWork['begin']> {
  try {
    return work.begin(block, signal);
  } catch (error) {
    return { ended: Promise.reject(error as Error), freed: Promise.resolve() };
  }
}

interface Turn {
  /** Resolves when the block before in the column band has passed it on. */
  readonly free: Promise<void>;
  readonly pass: () => void;
}

function columnTurns(blocks: readonly GridBlock[]): Map<GridBlock, Turn> {
  const last: Promise<void>[] = [];
  return new Map(
    blocks.map((block) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const free = last[block.column] ?? Promise.resolve();
      last[block.column] = promise;
      return [block, { free, pass: resolve }];
    }),
  );
}

import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import { copiesEnded, readPiece, writePiece } from '../exchange/copy-files.ts';
import { FreshMemory } from '../exchange/fresh-memory.ts';
import type { GpuHost } from './host.ts';

/** The services of Node. */
export const nodeHost: GpuHost = {
  pieces: { write: writePiece, read: readPiece, ended: copiesEnded },
  awaitedValues: (length) => new FreshMemory(length),
  collectGarbage,
};

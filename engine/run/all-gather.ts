import type { PartitionRef } from '../partition.ts';
import { HOST, type Place } from '../plan/place.ts';
import type { StepList } from './step-list.ts';

/** The exchange all-gather: every place gets the rows of all parts as one matrix, by way of host memory, in part order. `make` names the matrix, once all parts are in host memory. */
export function allGather(list: StepList, stage: string, parts: readonly { readonly ref: PartitionRef; readonly home: Place }[], make: () => PartitionRef, places: readonly Place[]): void {
  const refs = parts.map(({ ref }) => ref);
  for (const { ref, home } of parts) list.move(stage, ref, home, HOST);
  const joined = make();
  list.join(stage, refs, joined);
  list.free(stage, HOST, refs);
  for (const place of places) list.move(stage, joined, HOST, place);
  list.free(stage, HOST, [joined]);
}

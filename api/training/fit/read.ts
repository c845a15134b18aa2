import type { EventSink } from '../../../engine/events.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import { loadingStages } from '../../../operators/planner/load-stages.ts';
import { loadedOnce, makeRoom, noteBytes } from '../kept-ratings.ts';
import { openedDevices } from '../training-device.ts';
import type { FitAlgorithm, FitTypes, ReadStages } from './algorithm.ts';
import { devicesOf, type FitRun } from './fit-run.ts';

/** The stages of the reading phase; `begun` ends when the first rows have been read. */
export interface ReadPhase<Types extends FitTypes> extends ReadStages<Types> {
  readonly begun: ScopeStage<void>;
}

/**
 * Reads the ratings while devices open. Their sizes then decide where they are stored: in one block in
 * memory, in several parts, or in files.
 */
export function readPhase<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  { scope, ratings, given }: FitRun,
): ReadPhase<Types> {
  const { form } = algorithm;
  makeRoom(ratings, form);
  const reading = Promise.withResolvers<void>();
  const begun = { name: 'first ratings', result: reading.promise };
  const opened = scope.stage(
    'open devices',
    {},
    async (_, ctx) => {
      await openedDevices(ratings.session, algorithm.params, ctx);
      if (given) algorithm.requireProblem(given);
      if (given) devicesOf(given, ctx);
    },
    { need: 'none' },
  );
  const read = scope.stage(
    loadingStages.read,
    {},
    (_, ctx) => {
      const events: EventSink = (event) => {
        if (event.type === 'phase-progress') reading.resolve();
        ctx.events(event);
      };
      return loadedOnce(ratings, `${form} index`, () => algorithm.index({ ...ctx, events })).finally(
        reading.resolve,
      );
    },
    { after: given ? [opened] : [] },
  );
  const home = scope.stage('plan sizes', { opened, read }, ({ read: found }, ctx) => {
    const expected = algorithm.home(found, ctx);
    noteBytes(ratings, form, expected.plan);
    return expected;
  });
  return { begun, opened, read, home };
}

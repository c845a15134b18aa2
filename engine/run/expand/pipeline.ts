import type { Place } from '../../plan/place.ts';
import type { Stage } from '../../plan/stages.ts';
import type { StageParts } from './stage-parts.ts';

/** The end of the stages that go through a pipeline together with the one at `at`: one behind it, where it names none. */
export function endOfPipeline(stages: readonly Stage[], at: number): number {
  const { pipeline: name } = stages[at];
  const others = stages.findIndex((stage, next) => next > at && (name === undefined || stage.pipeline !== name));
  return others < 0 ? stages.length : others;
}

/** A stage with several parts for one of another takes them in a row. The places take turns, so that all are at work from the first part on. */
export function pipeline(stages: readonly StageParts[]): void {
  const count = Math.min(...stages.map(({ at }) => at.length));
  const seen = new Map<Place, number>();
  const turns = Array.from({ length: count }, (_, part) => {
    const place = stages[0].at[(part * stages[0].at.length) / count];
    seen.set(place, (seen.get(place) ?? 0) + 1);
    return { part, turn: seen.get(place) as number };
  });
  for (const { part } of turns.sort((left, right) => left.turn - right.turn)) {
    for (const { at, run } of stages) {
      const each = at.length / count;
      for (let one = part * each; one < (part + 1) * each; one++) run(one);
    }
  }
  for (const { end } of stages) end?.();
}

/** The first part of each data set, then the second of each. */
export function inTurn(sets: readonly StageParts[]): StageParts {
  const [{ at }] = sets;
  if (sets.some((one) => one.at.length !== at.length)) throw new Error('the data sets of a stage in a pipeline have different numbers of parts');
  return { at, run: (part) => sets.forEach(({ run }) => run(part)), end: () => sets.forEach(({ end }) => end?.()) };
}

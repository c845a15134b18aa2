import type { Place } from '../../plan/place.ts';
import type { Stage } from '../../plan/stages.ts';
import type { StageParts } from './stage-parts.ts';

/**
 * The index after the last stage of the pipeline that starts with the stage at index `at`. `at` + 1 if that
 * stage belongs to no pipeline.
 */
export function endOfPipeline(stages: readonly Stage[], at: number): number {
  const { pipeline: name } = stages[at];
  const others = stages.findIndex(
    (stage, next) => next > at && (name === undefined || stage.pipeline !== name),
  );
  return others < 0 ? stages.length : others;
}

/**
 * Processes part after part, each through all stages. If a stage has several parts for each part of another
 * stage, it processes them one after the other. Consecutive parts are at different places, so that all
 * places have work from the start.
 */
export function pipeline(stages: readonly StageParts[]): void {
  const count = Math.min(...stages.map(({ at }) => at.length));
  const seen = new Map<Place, number>();
  const turns = Array.from({ length: count }, (_, part) => {
    const place = stages[0].at[(part * stages[0].at.length) / count];
    seen.set(place, (seen.get(place) ?? 0) + 1);
    return { part, turn: seen.get(place) as number };
  });
  for (const { part } of turns.sort((left, right) => left.turn - right.turn)) {
    for (let from = 0; from < stages.length;) {
      const to = endOfLoop(stages, from);
      for (let time = 0; time < (stages[from].times ?? 1); time++)
        for (const stage of stages.slice(from, to)) runPart(stage, part, count);
      from = to;
    }
  }
  for (const { end } of stages) end?.();
}

/**
 * The index after the last stage that repeats together with the stage at index `from`. `from` + 1 if that
 * stage does not repeat.
 */
function endOfLoop(stages: readonly StageParts[], from: number): number {
  if (stages[from].times === undefined) return from + 1;
  const end = stages.findIndex(({ times }, at) => at > from && times === undefined);
  return end < 0 ? stages.length : end;
}

function runPart({ at, run }: StageParts, part: number, count: number): void {
  const each = at.length / count;
  for (let one = part * each; one < (part + 1) * each; one++) run(one);
}

/**
 * The parts of several data sets in one list: the first part of each data set, then the second part of each,
 * and so on.
 */
export function inTurn(sets: readonly StageParts[]): StageParts {
  const [{ at }] = sets;
  if (sets.some((one) => one.at.length !== at.length))
    throw new Error('the data sets of a stage in a pipeline have different numbers of parts');
  return {
    at,
    run: (part) => sets.forEach(({ run }) => run(part)),
    end: () => sets.forEach(({ end }) => end?.()),
  };
}

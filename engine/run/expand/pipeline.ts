import type { Place } from '../../plan/place.ts';
import type { Stage } from '../../plan/stages.ts';

/**
 * The parts that a stage processes, in order: the place of each part, and functions that add a part's steps
 * and the steps after the last part.
 */
export interface StageParts {
  readonly at: readonly Place[];
  run(part: number): void;
  /** Set for a stage that repeats. */
  readonly times?: number;
  /** True for a stage of a pipeline in which the parts of all places are processed together. */
  readonly together?: boolean;
  end?(): void;
}

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
 * Processes one part after the other, each through all stages of a pipeline. If a stage has several parts for
 * each part of another stage, it processes them one after the other. Consecutive parts are at different
 * places, so that all places have work from the start. `together` (of a stage): one part of each place goes
 * through the stages at the same time, so that places compute while others wait for an exchange.
 */
export function pipeline(stages: readonly StageParts[]): void {
  const count = Math.min(...stages.map(({ at }) => at.length));
  const together = stages.some((stage) => stage.together);
  const homes = together ? stages.find(({ at }) => at.length === count) : undefined;
  const turns = turnsOf(homes ?? stages[0], count);
  const groups = together ? turns : turns.flat().map((part) => [part]);
  for (const group of groups)
    runGroup(stages, (stage) => group.forEach((part) => runPart(stage, part, count)));
  for (const { end } of stages) end?.();
}

/** Runs parts through all stages, with the repetitions of stages that repeat. */
function runGroup(stages: readonly StageParts[], run: (stage: StageParts) => void): void {
  for (let from = 0; from < stages.length;) {
    const to = endOfLoop(stages, from);
    for (let time = 0; time < (stages[from].times ?? 1); time++) stages.slice(from, to).forEach(run);
    from = to;
  }
}

/** The parts of each turn: the first of every place, the second of every place, and so on. */
function turnsOf({ at }: StageParts, count: number): number[][] {
  const seen = new Map<Place, number>();
  const turns: number[][] = [];
  for (let part = 0; part < count; part++) {
    const place = at[(part * at.length) / count];
    const turn = seen.get(place) ?? 0;
    seen.set(place, turn + 1);
    (turns[turn] ??= []).push(part);
  }
  return turns;
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
 * Combines several data sets, so that the first part of each is processed, then the second part of each, and
 * so on.
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

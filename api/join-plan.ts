import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { nearest, spelled } from '../engine/nearest.ts';
import type { LogicalPlan } from '../engine/stream/logical-plan.ts';
import { type JoinKind, joinKinds, type JoinParams } from '../operators/dataflow/join/join-columns.ts';
import { joinedRows } from '../operators/dataflow/join/joined.ts';
import { checkOptions } from './check-options.ts';
import { Column } from './expressions.ts';
import { readyPlan } from './run-rows.ts';
import type { RunSession } from './run-session.ts';

/** The columns to compare: one name for both sides, or pairs of a left and a right name. */
export type JoinKeys<Left extends string = string, Right extends string = string> =
  | (Left & Right)
  | readonly (Left & Right)[]
  | { readonly left: Left | readonly Left[]; readonly right: Right | readonly Right[] };

export interface JoinOptions {
  /** Default 'inner'. */
  readonly how?: JoinKind;
  /** Appended to names of the other side's columns that exist on this side too, such as '_right'. */
  readonly suffix?: string;
}

interface Joinable {
  readonly session: RunSession;
  readonly plan: LogicalPlan;
}

/** The plan of a join of two sides. Throws UsageError for invalid sides, keys and kinds. */
export function joinPlan(
  sides: readonly [Joinable, Joinable],
  on: JoinKeys,
  how: JoinKind | JoinOptions = 'inner',
): LogicalPlan {
  const [{ session, plan }, other] = sides;
  if (!isJoinable(other)) throw new UsageError(`join takes a data set, got ${shown(other)}`);
  if (other.session !== session)
    throw new UsageError('a join takes data sets of one session', {
      advice: 'Read both by the same session',
    });
  const ready = async (input: LogicalPlan) => readyPlan({ plan: input, session }, undefined, undefined);
  return joinedRows([plan, other.plan], joinParams(on, how), ready);
}

function isJoinable(other: unknown): boolean {
  return typeof other === 'object' && other !== null && 'session' in other && 'plan' in other;
}

function joinParams(on: JoinKeys, how: JoinKind | JoinOptions): JoinParams {
  const options = typeof how === 'string' ? { how } : how;
  checkOptions('join', options, ['how', 'suffix'], "'left' or { how: 'left', suffix: '_right' }");
  const { how: kind = 'inner', suffix } = options;
  if (!joinKinds.includes(kind)) throw unknownKind(kind);
  if (suffix !== undefined && (typeof suffix !== 'string' || suffix === ''))
    throw new UsageError(`the suffix of a join must be a text such as '_right', got ${shown(suffix)}`);
  return { kind, keys: keysOf(on), build: 'right', ...(suffix !== undefined && { suffix }) };
}

function keysOf(on: JoinKeys): JoinParams['keys'] {
  if (typeof on === 'string' || isNames(on)) return { left: namesOf(on), right: namesOf(on) };
  if (typeof on !== 'object' || on === null || on instanceof Column)
    throw new UsageError(`join takes names of columns, or { left, right }, got ${shown(on)}`, {
      advice: "Write join(other, 'item') or join(other, { left: 'user', right: 'id' })",
    });
  checkOptions('join', on, ['left', 'right'], "{ left: 'user', right: 'id' }");
  const keys = { left: namesOf(on.left), right: namesOf(on.right) };
  if (keys.left.length !== keys.right.length)
    throw new UsageError(
      `join: ${keys.left.length} columns of the left cannot be compared with ${keys.right.length} of the right`,
    );
  return keys;
}

function isNames(on: unknown): on is readonly string[] {
  return Array.isArray(on);
}

function namesOf(names: string | readonly string[]): readonly string[] {
  const all: readonly unknown[] = typeof names === 'string' ? [names] : isNames(names) ? names : [names];
  if (all.length === 0) throw new UsageError('join takes one key or more');
  const wrong = all.findIndex((name) => typeof name !== 'string');
  if (wrong >= 0)
    throw new UsageError(`a key of a join must be the name of a column, got ${shown(all[wrong])}`);
  const twice = all.find((name, i) => all.indexOf(name) < i);
  if (twice !== undefined) throw new UsageError(`join: the key ${shown(twice)} is named twice`);
  return all as readonly string[];
}

/** Spark's other names of kinds. */
const sparkKinds: ReadonlyMap<string, JoinKind> = new Map([
  ['outer', 'full'],
  ['fullouter', 'full'],
  ['full_outer', 'full'],
  ['leftouter', 'left'],
  ['left_outer', 'left'],
  ['rightouter', 'right'],
  ['right_outer', 'right'],
  ['leftsemi', 'semi'],
  ['left_semi', 'semi'],
  ['leftanti', 'anti'],
  ['left_anti', 'anti'],
]);

function unknownKind(kind: unknown): UsageError {
  const guess = typeof kind === 'string' ? (sparkKinds.get(kind) ?? nearest(kind, joinKinds)) : undefined;
  return new UsageError(`there is no join ${shown(kind)}`, {
    advice: spelled(guess, `The kinds are: ${joinKinds.join(', ')}`),
  });
}

import { UsageError } from '../engine/errors.ts';
import { literal } from '../engine/expressions/expression.ts';
import { shown } from '../engine/format.ts';
import { nearest, spelled } from '../engine/nearest.ts';
import { andThen, type LogicalPlan } from '../engine/stream/logical-plan.ts';
import { type JoinKind, joinKinds, type JoinParams } from '../operators/dataflow/join/join-columns.ts';
import { joinedRows } from '../operators/dataflow/join/joined.ts';
import { Project } from '../operators/dataflow/project.ts';
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

/** Options of `asOfJoin`: the compared times, and keys that must be equal. */
export interface AsOfOptions<Left extends string = string, Right extends string = string> {
  /** The column of the time or number, of one name or two. */
  readonly at: (Left & Right) | { readonly left: Left; readonly right: Right };
  readonly on?: JoinKeys<Left, Right>;
  /** Default 'inner'. */
  readonly how?: 'inner' | 'left';
  /** True: only rows before the time, not at it. */
  readonly strict?: boolean;
  /** Appended to names of the other side's columns that exist on this side too. */
  readonly suffix?: string;
}

/** The columns of the other side that an asOf join leaves out. */
export type AsOfKeys<Options extends AsOfOptions> =
  | ('on' extends keyof Options ? Options['on'] : never)
  | (Options['at'] extends string ? Options['at'] : never);

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
  return planOf('join', sides, () => joinParams(on, how));
}

/** A column that has the same value in all rows of both sides. */
const EVERY = 'join with every row';

/** The plan of a cross join: a join by a constant. */
export function crossPlan(
  sides: readonly [Joinable, Joinable],
  options: Pick<JoinOptions, 'suffix'>,
): LogicalPlan {
  checkOptions('crossJoin', options, ['suffix'], "{ suffix: '_right' }");
  return joinOfAll('crossJoin', sides, () => joinParams(EVERY, options));
}

function joinOfAll(
  what: string,
  sides: readonly [Joinable, Joinable],
  params: () => JoinParams,
): LogicalPlan {
  const columns = [{ name: EVERY, value: literal(1) }];
  const each = (plan: LogicalPlan) => andThen(plan, new Project({ kind: 'with', columns }));
  return andThen(planOf(what, sides, params, each), new Project({ kind: 'drop', names: [EVERY] }));
}

/** The other side's time, where it has the name of this side's. */
const OTHER_TIME = 'time of the other side';

/** The plan of an asOf join. Throws UsageError for invalid sides and options. */
export function asOfPlan(sides: readonly [Joinable, Joinable], options: AsOfOptions): LogicalPlan {
  const example = "{ on: 'item', at: 'ts' }";
  checkOptions('asOfJoin', options, ['at', 'on', 'how', 'strict', 'suffix'], example);
  const { at, on = EVERY, how = 'inner', strict = false, suffix } = options;
  if (how !== 'inner' && how !== 'left')
    throw new UsageError(`the how of asOfJoin must be inner or left, got ${shown(how)}`);
  if (typeof strict !== 'boolean')
    throw new UsageError(`strict of asOfJoin must be true or false, got ${shown(strict)}`);
  const { left, right } = typeof at === 'string' ? { left: at, right: at } : (at ?? {});
  if (typeof left !== 'string' || typeof right !== 'string')
    throw new UsageError(`the at of asOfJoin must name the column of the time, got ${shown(at)}`, {
      advice: `Write ${example}, or at: { left: 'ordered', right: 'since' }`,
    });
  const isSame = left === right;
  const asOf = { left, right: isSame ? OTHER_TIME : right, ...(strict && { strict }) };
  const params = () => ({ ...joinParams(on, { how, ...(suffix !== undefined && { suffix }) }), asOf });
  const [own, other] = sides;
  const rename = new Project({ kind: 'rename', from: right, to: OTHER_TIME });
  const renamed =
    isSame && isJoinable(other) ? { ...joinable(other), plan: andThen(other.plan, rename) } : other;
  const join = on === EVERY ? joinOfAll : planOf;
  const plan = join('asOfJoin', [own, renamed], params);
  return isSame ? andThen(plan, new Project({ kind: 'drop', names: [OTHER_TIME] })) : plan;
}

const joinable = ({ session, plan }: Joinable): Joinable => ({ session, plan });

function planOf(
  what: string,
  [{ session, plan }, other]: readonly [Joinable, Joinable],
  params: () => JoinParams,
  each = (input: LogicalPlan) => input,
): LogicalPlan {
  if (!isJoinable(other)) throw new UsageError(`${what} takes a data set, got ${shown(other)}`);
  if (other.session !== session)
    throw new UsageError('a join takes data sets of one session', {
      advice: 'Read both by the same session',
    });
  const ready = async (input: LogicalPlan) => readyPlan({ plan: input, session }, undefined, undefined);
  return joinedRows([each(plan), each(other.plan)], params(), ready);
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

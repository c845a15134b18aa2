import type { Baselines, TrainingIteration } from '../../../index.ts';
import { formatCount } from '../../../engine/format.ts';
import { Plot } from '../../generated/charts.js';
import { type Chart, type Series, stroke } from '../figure.ts';
import type { Section } from '../section.ts';

export interface TrainingCourse {
  readonly called: 'iteration' | 'epoch';
  readonly iterations: readonly TrainingIteration[];
  readonly bestIteration: number;
  readonly baselines?: Baselines | undefined;
}

/** Numbers from here on are shown in thousands and millions. */
const LARGE = 10_000;

/** More points than these are drawn as a line without dots. */
const MOST_DOTS = 60;

/** Loss and error by iteration and by second, with the errors of means as lines. */
export function trainingSection({ called, iterations, bestIteration, baselines }: TrainingCourse): Section {
  const errors: Curve[] = [
    { name: 'test RMSE', style: 0, of: ({ testRmse }) => testRmse },
    { name: 'train RMSE', style: 1, of: ({ trainRmse }) => trainRmse },
  ];
  const metrics = Object.keys(iterations[0]?.testMetrics ?? {}).map((name, at): Curve => ({ name: `test ${name}`, style: at % 4, of: ({ testMetrics }) => testMetrics?.[name] }));
  const rules = baselines ? [{ name: 'the mean', value: baselines.mean.rmse }, { name: 'damped means', value: baselines.dampedMeans.rmse }] : [];
  const curves = errors.filter(({ of }) => iterations.some((one) => of(one) !== undefined));
  const charts = [
    ...(curves.length === 0 ? [] : [curve('Error by iteration', called, iterations, curves, rules, bestIteration), curve('Error by time', 'seconds', iterations, curves, rules, bestIteration)]),
    ...metrics.map((one) => curve(`${one.name} by ${called}`, called, iterations, [one], [], bestIteration)),
    curve(`Loss by ${called}`, called, iterations, [{ name: 'loss', style: 2, of: ({ loss }) => loss }], [], bestIteration),
  ];
  const shown = (value: number | undefined, digits = 4) => (value === undefined ? '' : value.toFixed(digits));
  const head = [called, 'seconds', 'loss', ...curves.map(({ name }) => name), ...metrics.map(({ name }) => name)];
  const rows = thinned(iterations).map((one) => [String(one.iteration), one.seconds.toFixed(3), one.loss.toPrecision(7), ...[...curves, ...metrics].map(({ of }) => shown(of(one)))]);
  return { heading: `${called === 'epoch' ? 'Epochs' : 'Iterations'}`, text: `The model is that of ${called} ${formatCount(bestIteration)}. Seconds are those of the ${called}s alone, without evaluation.${iterations.some(({ fromSolve }) => fromSolve) ? ' Loss and train RMSE before the last come out of the solve, those of the last by a pass over the ratings.' : ''}`, charts, tables: [{ head, rows, numbers: () => true }] };
}

interface Curve extends Series {
  readonly of: (one: TrainingIteration) => number | undefined;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function curve(title: string, by: 'iteration' | 'epoch' | 'seconds', iterations: readonly TrainingIteration[], curves: readonly Curve[], rules: readonly { readonly name: string; readonly value: number }[], best: number): Chart {
  let passed = 0;
  const times = iterations.map(({ seconds }) => (passed += seconds));
  const points = (of: Curve['of']): Point[] => iterations.flatMap((one, at) => {
    const y = of(one);
    return y === undefined || !Number.isFinite(y) ? [] : [{ x: by === 'seconds' ? times[at] : one.iteration, y }];
  });
  const lines = curves.map(({ name, style, of }) => ({ name, style, points: points(of) }));
  const last = (values: readonly Point[]) => values.at(-1)?.y.toPrecision(5) ?? 'none';
  const summary = `${lines.map(({ name, points: own }) => `${name} goes from ${own[0]?.y.toPrecision(5) ?? 'none'} to ${last(own)}`).join('; ')}${rules.length === 0 ? '' : `; ${rules.map(({ name, value }) => `${name}: ${value.toFixed(4)}`).join(', ')}`}.`;
  return {
    title,
    summary,
    series: lines.map(({ name, style }) => ({ name, style })),
    options: (width) => ({
      height: Math.max(230, Math.round(0.55 * width)),
      marginLeft: 56,
      x: { label: by, ...(by === 'seconds' ? {} : { ticks: Math.min(iterations.length, width < 500 ? 6 : 12), tickFormat: (x: number) => (Number.isInteger(x) ? String(x) : '') }) },
      y: { label: curves.length === 1 ? curves[0].name : 'RMSE', grid: true, nice: true, ...(lines.some(({ points: own }) => own.some(({ y }) => y >= LARGE)) ? { tickFormat: '~s' } : {}) },
      marks: [
        ...rules.flatMap(({ name, value }) => [
          Plot.ruleY([value], { stroke: 'currentColor', strokeOpacity: 0.5, strokeDasharray: '3 4' }),
          Plot.text([value], { frameAnchor: 'right', y: (y: number) => y, dy: -7, textAnchor: 'end', text: () => `${name} ${value.toFixed(4)}` }),
        ]),
        ...lines.flatMap(({ name, style, points: own }) => [
          Plot.lineY(own, { x: 'x', y: 'y', ...stroke(style) }),
          ...(own.length > MOST_DOTS ? [] : [Plot.dot(own, { x: 'x', y: 'y', r: 3, fill: stroke(style).stroke, title: ({ x, y }: Point) => `${name}, ${by} ${x.toPrecision(4)}: ${y.toPrecision(6)}` })]),
        ]),
        ...(iterations.length > 1 && best < iterations.length && by !== 'seconds' ? [Plot.ruleX([best], { stroke: 'currentColor', strokeOpacity: 0.4 })] : []),
      ],
    }),
  };
}

/** At most a hundred rows, the first and the last among them. */
function thinned(iterations: readonly TrainingIteration[]): readonly TrainingIteration[] {
  const every = Math.ceil(iterations.length / 100);
  return iterations.filter((_, at) => at % every === 0 || at === iterations.length - 1);
}

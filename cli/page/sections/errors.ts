import { formatCount } from '../../../engine/format.ts';
import { Plot } from '../../generated/charts.js';
import type { ErrorBreakdown } from '../../report/measured.ts';
import { type Chart, fill, stroke } from '../figure.ts';
import type { Section } from '../page.ts';
import { range } from './ratings.ts';

/**
 * The errors on held-out ratings by properties of the pairs, and the agreement of predictions and ratings.
 */
export function errorsSection({
  byRating,
  byUserRatings,
  byItemRatings,
  calibration,
}: ErrorBreakdown): Section {
  const charts = [
    ...(byUserRatings
      ? [errorChart("Error by the user's number of training ratings", byUserRatings, degree)]
      : []),
    ...(byItemRatings
      ? [errorChart("Error by the item's number of training ratings", byItemRatings, degree)]
      : []),
    errorChart('Error by rating', byRating, ({ least, most }) =>
      least === most
        ? String(Number(least.toPrecision(4)))
        : `${least.toPrecision(3)} to ${most.toPrecision(3)}`,
    ),
    calibrationChart(calibration),
  ];
  return {
    heading: 'Errors on held-out ratings',
    text: 'Pairs with an unknown user or item are left out. Bias is the mean of rating minus prediction: above 0 the model predicts too little.',
    charts,
  };
}

type ErrorBin = ErrorBreakdown['byRating'][number];

/** Bins are powers of two, but the shown bounds are the smallest and largest actual counts. */
function degree({ least, most }: ErrorBin): string {
  return range(least, most);
}

function errorChart(title: string, bins: readonly ErrorBin[], nameOf: (bin: ErrorBin) => string): Chart {
  const named = bins.map((bin) => ({ ...bin, name: nameOf(bin) }));
  const damped = named.filter(({ dampedMeansRmse }) => dampedMeansRmse !== undefined);
  const [worst, best] = [
    Math.max(...bins.map(({ rmse }) => rmse)),
    Math.min(...bins.map(({ rmse }) => rmse)),
  ];
  return {
    title,
    summary: `The RMSE is between ${best.toFixed(3)} and ${worst.toFixed(3)}.`,
    series: [{ name: 'model', style: 0 }, ...(damped.length > 0 ? [{ name: 'damped means', style: 1 }] : [])],
    tips: named.map(({ name, rmse, pairs, dampedMeansRmse }) => ({
      x: name,
      y: rmse,
      text: `${name}\nRMSE ${rmse.toFixed(4)}, ${formatCount(pairs)} pairs${dampedMeansRmse === undefined ? '' : `\ndamped means ${dampedMeansRmse.toFixed(4)}`}`,
    })),
    options: (width) => ({
      height: Math.max(250, Math.round(0.5 * width)),
      marginTop: 26,
      marginBottom: 70,
      x: { label: null, domain: named.map(({ name }) => name), tickRotate: -35, type: 'point' },
      y: { label: 'RMSE', grid: true, zero: true },
      marks: [
        ...(damped.length > 0
          ? [
              Plot.lineY(damped, { x: 'name', y: 'dampedMeansRmse', ...stroke(1) }),
              Plot.dot(damped, { x: 'name', y: 'dampedMeansRmse', r: 3, ...fill(1) }),
            ]
          : []),
        Plot.lineY(named, { x: 'name', y: 'rmse', ...stroke(0) }),
        Plot.dot(named, { x: 'name', y: 'rmse', r: 4, ...fill(0) }),
        Plot.ruleY([0]),
      ],
    }),
    numbers: {
      head: ['', 'pairs', 'RMSE', ...(damped.length > 0 ? ['damped means'] : []), 'bias'],
      rows: named.map(({ name, pairs, rmse, dampedMeansRmse, meanError }) => [
        name,
        formatCount(pairs),
        rmse.toFixed(4),
        ...(damped.length > 0 ? [dampedMeansRmse?.toFixed(4) ?? ''] : []),
        meanError.toFixed(4),
      ]),
    },
  };
}

function calibrationChart(bins: ErrorBreakdown['calibration']): Chart {
  const furthest = Math.max(...bins.map(({ predicted, rated }) => Math.abs(predicted - rated)));
  const ends = [
    Math.min(...bins.flatMap(({ predicted, rated }) => [predicted, rated])),
    Math.max(...bins.flatMap(({ predicted, rated }) => [predicted, rated])),
  ];
  return {
    title: 'Calibration',
    summary: `Ten groups of pairs by prediction; on the line, the mean rating is the mean prediction. The furthest group is ${furthest.toFixed(3)} off.`,
    tips: bins.map(({ predicted, rated, pairs }) => ({
      x: predicted,
      y: rated,
      text: `predicted ${predicted.toFixed(3)}, rated ${rated.toFixed(3)}\n${formatCount(pairs)} pairs`,
    })),
    options: (width) => ({
      height: Math.max(230, Math.round(0.6 * width)),
      marginTop: 26,
      marginBottom: 44,
      x: { label: 'mean prediction', labelOffset: 40, grid: true, nice: true },
      y: { label: 'mean rating', grid: true, nice: true },
      marks: [
        Plot.line(
          ends.map((end) => [end, end] as [number, number]),
          { stroke: 'currentColor', strokeOpacity: 0.5, strokeDasharray: '3 4' },
        ),
        Plot.dot(bins, { x: 'predicted', y: 'rated', r: 5, ...fill(0) }),
      ],
    }),
    numbers: {
      head: ['group', 'pairs', 'mean prediction', 'mean rating'],
      rows: bins.map(({ pairs, predicted, rated }, at) => [
        String(at + 1),
        formatCount(pairs),
        predicted.toFixed(4),
        rated.toFixed(4),
      ]),
    },
  };
}

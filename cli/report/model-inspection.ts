import { columnsText, metricsText, modelTitle } from '../../api/inspect/model-facts.ts';
import type { InspectedModel } from '../../api/inspect/model-folder.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../index.ts';
import type { CommandResult } from '../commands/command.ts';
import { flagName } from '../options/option.ts';
import { trainingOptions } from '../options/training/training-options.ts';
import { facts } from './facts.ts';
import { nameFlags } from './name-flags.ts';

/** The result of `inspect` on the folder of a model. */
export function modelInspection(directory: string, model: InspectedModel): CommandResult {
  const { algorithm, rank, biases, users, items, idTypes, params, metrics, coldStartStrategy, bytes } = model;
  const { ratings, iterations, bestIteration, columns, metadata, attributes } = model;
  const of = (name: string) => metadata[name] ?? null;
  const warnings = warningsOf(metadata);
  const kept = bestIteration === iterations ? '' : `, the model is that of ${bestIteration}`;
  const text = [
    `${directory}: a model, ${modelTitle(model)}, ${formatBytes(bytes)}`,
    facts([
      ['users', `${formatCount(users)}, ids ${idTypes.user}`],
      ['items', `${formatCount(items)}, ids ${idTypes.item}`],
      ['ratings', ratings === undefined ? undefined : formatCount(ratings)],
      ['iterations', iterations === undefined ? undefined : `${iterations}${kept}`],
      ['metrics', metricsText(model)],
      ['parameters', paramsText(params)],
      ['columns', columnsText(columns)],
      ['item attributes', attributes.item?.join('; ')],
      ['user attributes', attributes.user?.join('; ')],
      ['cold pairs', coldStartStrategy === 'drop' ? 'left out of predictions' : 'predicted as NaN'],
      [
        'trained by',
        algorithm === undefined
          ? 'another program, such as Spark; its metadata have no parameters and measures'
          : undefined,
      ],
    ]),
    ...warnings.map((warning) => `warning: ${warning.text}`),
  ].join('\n');
  return {
    json: {
      command: 'inspect',
      model: directory,
      algorithm: algorithm ?? null,
      rank,
      biases,
      users,
      items,
      ratings: ratings ?? null,
      idTypes,
      params,
      iterations: iterations ?? null,
      bestIteration: bestIteration ?? null,
      metrics,
      baselines: of('baselines'),
      testPairs: of('testPairs'),
      coldPairs: of('coldPairs'),
      duplicates: of('duplicates'),
      badRows: of('badRows'),
      warnings,
      columns: { ...columns },
      attributes: { ...attributes },
      coldStartStrategy,
      bytes,
    },
    text,
  };
}

/** "rank 10, max-iter 10, reg-param 0.02": the flags of train. */
function paramsText(params: JsonObject): string | undefined {
  const texts = Object.entries(params).flatMap(([name, value]) =>
    value === null || value === undefined || value === false
      ? []
      : [
          `${flagName(name)}${value === true ? '' : ` ${Array.isArray(value) ? value.join(',') : String(value)}`}`,
        ],
  );
  return texts.length === 0 ? undefined : texts.join(', ');
}

/** The warnings of the training, with option names replaced by flags of train. */
function warningsOf({ warnings }: JsonObject): { readonly code: string; readonly text: string }[] {
  if (!Array.isArray(warnings)) return [];
  return warnings.flatMap((warning: unknown) => {
    const { code, text } = (warning ?? {}) as { readonly code?: unknown; readonly text?: unknown };
    return typeof code === 'string' && typeof text === 'string'
      ? [{ code, text: nameFlags(text, trainingOptions) }]
      : [];
  });
}

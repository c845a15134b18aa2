import type { Dataset } from '../../api/dataset.ts';
import { UsageError } from '../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../engine/format.ts';
import { type CommandContext, type CommandResult, defineCommand } from './command.ts';
import { facts } from '../report/facts.ts';
import { openSession } from '../sessions/open-session.ts';
import { formatOption } from '../options/data-options.ts';
import { idList, text, wholeNumber } from '../options/kinds.ts';
import { machineOptions, parquetBackendOption } from '../options/machine-options.ts';
import { codecOption, commonOptions, forceOption } from '../options/output-options.ts';
import { seconds3 } from '../progress/phrases.ts';
import { type Recommendation, recommendationRows, recommendationTable } from '../report/recommendations.ts';
import { type CheckedSink, openFileOutput, OUTPUT_DESCRIPTION, writeOutput } from '../output/write-output.ts';

/** Most users whose recommendations are printed. */
const MOST_PRINTED = 100;

const options = {
  output: text({ describe: `${OUTPUT_DESCRIPTION}; a table is printed without it`, group: 'Output:' }),
  users: text({ describe: 'all, or ids with commas between them', group: 'Data:', isList: true, fallback: 'all' }),
  n: wholeNumber({ describe: 'items for each user, 1 to 1,000', group: 'Data:', least: 1, most: 1000, fallback: 10 }),
  exclude: text({ describe: 'ratings whose pairs are not recommended, such as those trained on; a file, a folder or a quoted glob', group: 'Data:' }),
  format: formatOption,
  ...machineOptions,
  parquetBackend: parquetBackendOption,
  codec: codecOption,
  force: forceOption,
  ...commonOptions,
};

export const recommend = defineCommand({
  summary: 'Find the best items for all users or some',
  positionals: [{ name: 'model', describe: 'folder of a model', required: true }],
  options,
  examples: [
    ['recommend model --output recs --exclude ratings/', 'ten new items for every user'],
    ['recommend model --users 1,2,3 --n 5', 'a table for three users'],
  ],
  run: async ({ values, given, positionals }, context) => {
    const { output, n, exclude } = values;
    const users = usersOf(values.users);
    const idle = output === undefined ? (['codec', 'force'] as const).find((name) => given.has(name)) : undefined;
    if (idle !== undefined) throw new UsageError(`--${idle} acts only with --output`, { advice: 'Leave it out, or say where to write' });
    const sink = output === undefined ? undefined : await openFileOutput(output, values, [positionals.model[0], exclude]);
    if (sink === undefined && (users === 'all' || users.length > MOST_PRINTED)) {
      throw new UsageError(`--output is needed for ${users === 'all' ? 'all users' : `more than ${MOST_PRINTED} users`}`, { advice: 'Give --output PATH, or a few users with --users id,id' });
    }
    await using session = await openSession(values, context.signal);
    const model = await session.loadModel(positionals.model[0]);
    const excluded = exclude === undefined ? undefined : await session.read.any(exclude, { format: values.format });
    await excluded?.schema();
    const found = users === 'all' ? model.recommendForAllUsers(n, { exclude: excluded }) : model.recommendForUsers(users, n, { exclude: excluded });
    const count = users === 'all' ? model.userCount : new Set(users).size;
    // Awaited here, since the session's threads end with this function.
    return output === undefined || sink === undefined ? await printed(found, n, count, context) : await written(found, { output, sink, n }, count, context);
  },
});

async function written(found: Dataset, { output, sink, n }: { readonly output: string; readonly sink: CheckedSink; readonly n: number }, users: number, { signal, onEvent, expect }: CommandContext): Promise<CommandResult> {
  expect('write', users * n);
  const { rows, bytes, files } = await writeOutput(found, sink, { signal, onEvent });
  const seconds = performance.now() / 1000;
  return {
    json: { command: 'recommend', users, n, rows, files, bytes, seconds: { total: seconds }, output },
    text: facts([
      ['users', formatCount(users)],
      ['recommendations', `${formatCount(rows)}, at most ${n} a user`],
      ['time', seconds3(seconds)],
      ['output', `${output} (${counted(files, 'file')}, ${formatBytes(bytes)})`],
    ]),
  };
}

async function printed(found: Dataset, n: number, users: number, { signal, onEvent }: CommandContext): Promise<CommandResult> {
  const rows: Recommendation[] = [];
  for await (const batch of await found.stream({ signal, onEvent })) rows.push(...recommendationRows(batch));
  return { json: { command: 'recommend', users, n, rows: rows.length, recommendations: rows.map((row) => ({ ...row })) }, text: recommendationTable(rows) };
}

function usersOf(given: string): 'all' | string[] {
  if (given === 'all') return 'all';
  return idList(given, '--users');
}

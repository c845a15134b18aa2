import type { Dataset } from '../../api/dataset.ts';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import type { OpeningDevices } from '../../api/devices/open-devices.ts';
import type { SessionOptions } from '../../api/session-options.ts';
import type { Session } from '../../api/session.ts';
import type { EventSink } from '../../index.ts';
import type { CommandContext } from '../commands/command.ts';
import {
  type ColumnValues,
  type RowValues,
  readSpec,
  type ReadValues,
} from '../options/data/data-options.ts';

interface MachineValues {
  readonly device: DeviceRequest;
  readonly deviceMemory?: number | undefined;
  readonly workers: number | undefined;
  readonly memoryBudget?: number | undefined;
  readonly spillDir?: string | undefined;
  readonly parquetBackend?: SessionOptions['parquetBackend'] | undefined;
  readonly fakeDevices?: number | undefined;
}

/** Options of the session that depend on the command. */
type SessionManner = Pick<SessionOptions, 'once' | 'oneVersion'> & { readonly opening?: OpeningDevices };

/** Opens a session from the machine flags. Loads the engine, so flags and output are checked before. */
export async function openSession(
  { device, deviceMemory, workers, memoryBudget, spillDir, parquetBackend, fakeDevices }: MachineValues,
  { signal, profile }: Pick<CommandContext, 'signal' | 'profile'>,
  manner: SessionManner = {},
): Promise<Session> {
  const { Session } = await import('../../api/session.ts');
  return Session.create({
    device,
    deviceMemory,
    workers,
    memoryBudget,
    spillDir,
    parquetBackend,
    profile,
    fakeDevices,
    oneVersion: true,
    ...manner,
    signal,
  });
}

/**
 * Number of rows from the metadata of the files; undefined for text and Arrow, and if an operator follows.
 */
export async function knownRows({ plan, session }: Dataset): Promise<number | undefined> {
  return plan.kind === 'source' ? (await plan.source.statistics?.(session.context()))?.rows : undefined;
}

/** Opens ratings with the column names that flags give. */
export async function readNamed(
  session: Session,
  paths: string | readonly string[],
  values: ReadValues & ColumnValues,
): Promise<Dataset> {
  const { userCol, itemCol, ratingCol, timestampCol } = values;
  return (await chosenRows(await session.read.any(paths, readSpec(values)), values)).withColumnNames({
    user: userCol,
    item: itemCol,
    rating: ratingCol,
    timestamp: timestampCol,
  });
}

/** The same without --with and --where, for exclusions and candidates. */
export function readWhole(
  session: Session,
  paths: string | readonly string[],
  values: ReadValues & ColumnValues,
): Promise<Dataset> {
  return readNamed(session, paths, { ...values, with: undefined, where: undefined });
}

/** The rows with the columns of --with, filtered by --where. */
export async function chosenRows(rows: Dataset, { with: computed = [], where }: RowValues): Promise<Dataset> {
  if (computed.length === 0 && where === undefined) return rows;
  const { expr } = await import('../../api/parse-column.ts');
  const added = computed.reduce((made, { name, text }) => made.withColumn(name, expr(text)), rows);
  const chosen = where === undefined ? added : added.filter(expr(where));
  // Reports a wrong name or type before anything else is done.
  await chosen.schema();
  return chosen;
}

/** A listener that drops repeated notes. */
export function withoutRepeats(onEvent: EventSink): EventSink {
  const said = new Set<string>();
  return (event) => {
    if (event.type === 'note' && said.has(event.text)) return;
    if (event.type === 'note') said.add(event.text);
    onEvent(event);
  };
}

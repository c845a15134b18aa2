import { counted } from '../../../engine/format.ts';
import { columnOptions, indexOption, readOptions } from '../../options/data/data-options.ts';
import { checkNameFlags, nameOptions, readNames } from '../../options/data/name-options.ts';
import { decimal, listOf, size, text, wholeNumber } from '../../options/kinds.ts';
import { machineOptions, parquetBackendOption } from '../../options/machine-options.ts';
import { grouped, refuseFlags } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';
import { openSession, readNamed } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder } from '../command.ts';

const seconds = (describe: string, fallback: number, least: number) =>
  decimal(describe, { least, most: 3600, fallback });

const serverOptions = grouped('Server:', {
  port: wholeNumber('TCP port; 0 for any free one', { least: 0, most: 65_535, fallback: 8080 }),
  host: text('address to listen at; 0.0.0.0 for all addresses of the machine', { fallback: '127.0.0.1' }),
  tokenFile: text('file with a token that requests must send: "authorization: Bearer TOKEN"', {
    defaultText: 'the variable FACTORFLOW_TOKEN; without it no token is needed',
  }),
  allowHost: listOf(
    'names that the header "host" of requests may have, separated by commas, besides localhost, 127.x.x.x and ::1',
    { defaultText: 'any name, but none on a loopback address without a token' },
  ),
  poll: seconds('seconds between checks for a new model in the folder; 0: no checks', 5, 0),
  maxRequests: wholeNumber('requests at a time; further ones are refused with 503 and Retry-After', {
    least: 1,
    most: 10_000,
    fallback: 256,
  }),
  maxBody: size('largest body of a request, such as 1MiB', { defaultText: '1MiB', fallback: 2 ** 20 }),
  requestTimeout: seconds('seconds for an answer', 5, 0.001),
  receiveTimeout: seconds('seconds in which a client must send its whole request', 10, 0.1),
  grace: seconds('seconds that running requests get when the server ends', 10, 0),
});

const { workers } = machineOptions;

export const command = defineCommand({
  summary: 'Answer requests for recommendations over HTTP',
  positionals: [modelFolder],
  options: {
    ...serverOptions,
    exclude: text(
      'ratings whose pairs are not recommended, such as those trained on; a file, a folder or a quoted glob',
    ),
    items: text(
      'file with attributes of items, such as genres and prices, for the field filter of requests: ' +
        'CSV, TSV, NDJSON, Parquet or Arrow',
    ),
    itemsIdCol: text('its column of ids', {
      defaultText: "the model's item column, or item, movieId, id and the like",
    }),
    itemAttributes: text(
      "file with attributes of items, with the columns of the training's: items without ratings are served, too",
    ),
    userAttributes: text('the same for users'),
    index: indexOption,
    ...nameOptions,
    ...columnOptions,
    ...readOptions,
    workers,
    parquetBackend: parquetBackendOption,
    ...commonOptions,
  },
  examples: [
    [
      'serve model --exclude ratings/ --item-names movies.csv',
      'new items with titles, for this machine alone',
    ],
    ['serve model --items movies.parquet', "for requests with a filter such as genre = 'Drama'"],
    ['serve model --host 0.0.0.0 --port 80 --token-file token.txt', 'for other machines, with a token'],
  ],
  epilog:
    'Needs the package fastify; without it the command prints how to install it. /docs has the routes. ' +
    'SIGTERM and Ctrl-C let running requests end; SIGHUP loads the model again. npx does not pass signals on.',
  run: async ({ values, given, positionals }, { signal, onEvent, onHangup }) => {
    checkNameFlags(values);
    const { items, itemsIdCol } = values;
    if (items === undefined)
      refuseFlags(given, ['itemsIdCol'], 'acts only with --items', 'Leave it out, or name the file');
    const [folder] = positionals.model;
    const { readToken } = await import('../../server/check-head.ts');
    const token = readToken(values.tokenFile, process.env);
    const { loadFastify } = await import('../../server/load-fastify.ts');
    await loadFastify();
    await using session = await openSession({ ...values, device: 'cpu' }, { signal }, { oneVersion: false });
    const { serveModel } = await import('../../server/serve-model.ts');
    const { allowHost = [], exclude, host, port } = values;
    const served = await serveModel({
      host,
      allowHosts: allowHost,
      port,
      token,
      mostRequests: values.maxRequests,
      bodyBytes: values.maxBody,
      answerMilliseconds: 1000 * values.requestTimeout,
      receiveMilliseconds: 1000 * values.receiveTimeout,
      graceSeconds: values.grace,
      pollMilliseconds: 1000 * values.poll,
      data: {
        folder,
        session,
        index: values.index,
        readExclude: exclude === undefined ? undefined : () => readNamed(session, exclude, values),
        readFilters:
          items === undefined
            ? undefined
            : (model) =>
                model.readItemFilters(items, {
                  ...(itemsIdCol === undefined ? {} : { idCol: itemsIdCol }),
                  signal,
                  onEvent,
                }),
        attributeFiles: { item: values.itemAttributes, user: values.userAttributes },
        readNames: (model) => readNames(session, values, { signal, onEvent }, { model }),
        onEvent,
      },
      signal,
      onEvent,
      onHangup,
    });
    return {
      json: { command: 'serve', model: folder, ...served },
      text: `Answered ${counted(served.requests, 'request')} in ${served.seconds.toFixed(1)} s`,
    };
  },
});

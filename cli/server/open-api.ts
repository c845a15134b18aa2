import { packageInfo } from '../../api/package-info.ts';
import type { JsonObject } from '../../index.ts';
import { answerSchema, idSchema, type ObjectSchema, type Route } from './route.ts';

const readySchema = answerSchema({ ready: { type: 'boolean' }, model: { type: 'string' } });

const problems: Readonly<Record<number | string, string>> = {
  400: 'The request is malformed',
  401: 'The token is missing or wrong',
  403: 'The server does not answer to the name in the header host',
  404: 'The model does not know the id',
  408: 'The request came too slowly',
  413: 'The body is too large',
  415: 'The body is encoded or not JSON',
  500: 'The program failed; its log has the reason',
  503: 'Too many requests, or the answer took too long: try again after the seconds of Retry-After',
  default: 'Any other refusal',
};

/** A page of the server itself, which needs no model. */
interface OwnPage {
  readonly path: string;
  readonly summary: string;
  /** Without a token. */
  readonly isOpen: boolean;
  readonly type: string;
  readonly schema: JsonObject;
  /** Answers that are no errors in addition to 200. */
  readonly others?: JsonObject;
}

export const ownPages: readonly OwnPage[] = [
  {
    path: '/health',
    summary: 'The process answers',
    isOpen: true,
    type: 'application/json',
    schema: answerSchema({ ok: { type: 'boolean' } }),
  },
  {
    path: '/ready',
    summary: 'A model is loaded; 503 while the server ends',
    isOpen: true,
    type: 'application/json',
    schema: readySchema,
    others: { 503: { description: 'The server ends', content: contentOf(readySchema) } },
  },
  {
    path: '/metrics',
    summary: 'Metrics for Prometheus',
    isOpen: false,
    type: 'text/plain',
    schema: { type: 'string' },
  },
  {
    path: '/openapi.json',
    summary: 'This document',
    isOpen: false,
    type: 'application/json',
    schema: { type: 'object' },
  },
  {
    path: '/docs',
    summary: 'This document as a page',
    isOpen: false,
    type: 'text/html',
    schema: { type: 'string' },
  },
];

/** The OpenAPI document of the routes. `secured`: requests need a token. */
export function openApi(routes: readonly Route[], secured: boolean): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes)
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route, secured);
  for (const page of ownPages) paths[page.path] = { get: operationOfPage(page, secured) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'FactorFlow',
      version: packageInfo().version,
      description: 'Recommendations of a matrix factorization model.',
    },
    paths,
    components: {
      schemas: {
        Error: answerSchema({
          error: answerSchema({ code: { type: 'string' }, message: { type: 'string' } }),
        }),
      },
      ...(secured && { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } }),
    },
    ...(secured && { security: [{ token: [] }] }),
  };
}

function operationOf({ method, path, summary, query, body, answer }: Route, secured: boolean): JsonObject {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const parameters = [
    ...names.map((name) => ({
      name,
      in: 'path',
      description: 'percent-encoded; an id that a path cannot have, such as "..", is sent by POST',
      required: true,
      schema: idSchema,
    })),
    ...Object.entries(query.properties).map(([name, { description, ...schema }]) => ({
      name,
      in: 'query',
      description,
      schema,
      ...(schema.type === 'array' && { style: 'form', explode: false }),
    })),
  ];
  const isPost = method === 'POST';
  return {
    operationId: [method.toLowerCase(), ...(path.match(/\w+/g) ?? [])].join('_'),
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(isPost && { requestBody: { required: true, content: contentOf(body) } }),
    responses: {
      200: {
        description: 'OK',
        headers: { 'x-factorflow-model': { required: true, schema: { type: 'string' } } },
        content: contentOf(answer),
      },
      ...refusals([
        ...(secured ? [401] : []),
        ...(isPost || names.length > 0 ? [404] : []),
        ...(isPost ? [408, 413, 415] : []),
        503,
      ]),
    },
  };
}

function operationOfPage(
  { path, summary, isOpen, type, schema, others }: OwnPage,
  secured: boolean,
): JsonObject {
  return {
    operationId: `get_${path.match(/\w+/)?.[0]}`,
    summary,
    responses: {
      200: { description: 'OK', content: { [type]: { schema } } },
      ...refusals(secured && !isOpen ? [401] : []),
      ...others,
    },
    ...(secured && isOpen && { security: [] }),
  };
}

function refusals(statuses: readonly number[]): JsonObject {
  const content = contentOf({ $ref: '#/components/schemas/Error' });
  const all = [400, 403, ...statuses, 500, 'default'];
  return Object.fromEntries(all.map((status) => [status, { description: problems[status], content }]));
}

function contentOf(schema: JsonObject): JsonObject {
  return { 'application/json': { schema } };
}

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{font:600 1.05rem ui-monospace,monospace;margin:2rem 0 0}p{margin:.2rem 0}
table{border-collapse:collapse;margin:.4rem 0}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
code{font-family:ui-monospace,monospace}`;

/** The routes as a page, which loads nothing else. */
export function apiPage(routes: readonly Route[]): string {
  const sections = routes.map(
    ({ method, path, summary, query, body }) =>
      `<h2>${method} ${text(path)}</h2><p>${text(summary)}</p>${table(query, 'query')}${table(body, 'body')}`,
  );
  const own = ownPages.map(({ path, summary }) => `<h2>GET ${path}</h2><p>${text(summary)}</p>`);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>FactorFlow</title><style>${style}</style>
<h1>FactorFlow</h1><p>The same as <a href="openapi.json">openapi.json</a>. An error is
<code>{"error": {"code", "message"}}</code>.</p>${sections.join('\n')}\n${own.join('\n')}</html>\n`;
}

function table({ properties, required }: ObjectSchema, where: string): string {
  const rows = Object.entries(properties).map(
    ([name, { description }]) =>
      `<tr><td><code>${text(name)}</code></td><td>${where}${required.includes(name) ? ', required' : ''}</td><td>${text(String(description))}</td></tr>`,
  );
  return rows.length === 0 ? '' : `<table>${rows.join('')}</table>`;
}

function text(given: string): string {
  return given.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

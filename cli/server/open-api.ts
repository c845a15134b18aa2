import { packageInfo } from '../../api/package-info.ts';
import type { JsonObject } from '../../index.ts';
import { type Fields, idSchema } from './fields.ts';
import type { Route } from './route.ts';

const errorSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { code: { type: 'string' }, message: { type: 'string' } },
    },
  },
};

const refusals: Readonly<Record<string, string>> = {
  400: 'The request is malformed',
  401: 'The token is missing or wrong',
  404: 'The model does not know the id',
  413: 'The body is too large',
  415: 'The body is compressed or not JSON',
  503: 'Too many requests, or the answer took too long: try again after the seconds of Retry-After',
};

/** Pages of the server itself, which need no model; `isOpen`: without a token. */
export const ownPages = [
  { path: '/health', summary: 'The process answers', isOpen: true, type: 'application/json' },
  {
    path: '/ready',
    summary: 'A model is loaded; 503 while the server ends',
    isOpen: true,
    type: 'application/json',
  },
  { path: '/metrics', summary: 'Metrics for Prometheus', isOpen: false, type: 'text/plain' },
  { path: '/openapi.json', summary: 'This document', isOpen: false, type: 'application/json' },
  { path: '/docs', summary: 'This document as a page', isOpen: false, type: 'text/html' },
] as const;

/** The OpenAPI document of the routes. `secured`: requests need a token. */
export function openApi(routes: readonly Route[], secured: boolean): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  for (const { path, summary, type, isOpen } of ownPages)
    paths[path] = {
      get: {
        summary,
        responses: { 200: { description: 'OK', content: { [type]: {} } } },
        ...(isOpen ? { security: [] } : {}),
      },
    };
  return {
    openapi: '3.1.0',
    info: {
      title: 'FactorFlow',
      version: packageInfo().version,
      description: 'Recommendations of a matrix factorization model.',
    },
    paths,
    ...(secured && {
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    }),
  };
}

function operationOf({ path, summary, query, body, answer }: Route): JsonObject {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const parameters = [
    ...names.map((name) => ({ name, in: 'path', required: true, schema: idSchema })),
    ...Object.entries(query).map(([name, { describe, schema }]) => ({
      name,
      in: 'query',
      description: describe,
      schema,
      ...(schema.type === 'array' && { style: 'form', explode: false }),
    })),
  ];
  const content = (schema: JsonObject) => ({ 'application/json': { schema } });
  const errors = Object.entries(refusals).map(([status, description]) => [
    status,
    { description, content: content(errorSchema) },
  ]);
  return {
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(Object.keys(body).length > 0 && {
      requestBody: { required: true, content: content(schemaOf(body)) },
    }),
    responses: { 200: { description: 'OK', content: content(answer) }, ...Object.fromEntries(errors) },
  };
}

function schemaOf(fields: Fields): JsonObject {
  return {
    type: 'object',
    required: Object.entries(fields).flatMap(([name, { required }]) => (required ? [name] : [])),
    properties: Object.fromEntries(
      Object.entries(fields).map(([name, { schema, describe }]) => [
        name,
        { ...schema, description: describe },
      ]),
    ),
    additionalProperties: false,
  };
}

SELECT {pk}, {views}, {visitors} FROM {table} WHERE {pk} = ANY(%s::{pk_type}[])

from trytond.model import Unique, fields
from trytond.pool import PoolMeta


class SaleOpportunity(metaclass=PoolMeta):
    __name__ = 'sale.opportunity'

    external_id = fields.Char(
        "External ID",
        help="The operation that made this opportunity. No two have the same.")

    @classmethod
    def __setup__(cls):
        super().__setup__()
        t = cls.__table__()
        cls._sql_constraints.append((
            'external_id_unique', Unique(t, t.external_id),
            'leadonce_external_id.msg_external_id_unique'))

    @classmethod
    def copy(cls, opportunities, default=None):
        # A copy is another opportunity, and no operation made it.
        default = {} if default is None else default.copy()
        default.setdefault('external_id')
        return super().copy(opportunities, default=default)

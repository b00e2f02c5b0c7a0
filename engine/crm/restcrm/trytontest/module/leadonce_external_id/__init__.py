from trytond.pool import Pool

from . import opportunity


def register():
    Pool.register(
        opportunity.SaleOpportunity,
        module='leadonce_external_id', type_='model')
